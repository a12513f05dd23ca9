"""`dataclass` as the standard library's, whose methods cost nothing until they are called.

The standard one writes and compiles the source of up to six methods for each class when it is declared, 0.4 ms, and a small
bundle has a third of some 160 classes made. Here comparing, hashing and printing are functions that all classes share, and
`__init__` alone is compiled, by the first object. Fields, `replace` and `fields` are the standard library's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    import operator
    import reprlib

    _GIVEN = frozenset({"frozen", "eq", "repr"})

    def dataclass(cls=None, /, **options):
        """Make a class one of records: `frozen`, `eq` and `repr` as in the standard library, which does the rest itself."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if options.keys() - _GIVEN or "__init__" in vars(cls):
            return dataclasses.dataclass(**options)(cls)
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        given = dataclasses.fields(cls)
        cls.__init__ = _beginning(cls, given, options.get("frozen", False))
        if options.get("repr", True) and "__repr__" not in vars(cls):
            cls.__repr__ = _printing(given)
        if options.get("eq", True) and "__eq__" not in vars(cls):
            key = _key(given)
            cls.__eq__ = _comparing(key)
            cls.__hash__ = _hashing(key) if options.get("frozen", False) else None
        if options.get("frozen", False):
            cls.__setattr__, cls.__delattr__ = _keeping(cls, frozenset(each.name for each in given))
        return cls

    def _beginning(cls, given, frozen):
        def first(self, *args, **kwargs):
            made = _compiled(cls, given, frozen)
            made.__qualname__ = f"{cls.__qualname__}.__init__"
            cls.__init__ = made  # twice by two threads at once: both are the same
            made(self, *args, **kwargs)

        return first

    def _compiled(cls, given, frozen):
        """The standard library's `__init__` for these fields, from a class that is made for it alone."""
        fields = [
            (each.name, object, dataclasses.field(default=each.default))
            if each.default_factory is dataclasses.MISSING
            else (each.name, object, dataclasses.field(default_factory=each.default_factory))
            for each in given
        ]
        after = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
        return dataclasses.make_dataclass(
            cls.__name__, fields, namespace=after, frozen=frozen, repr=False, eq=False
        ).__init__

    def _key(given):
        """What two records are compared by: a tuple of their fields."""
        compared = [each.name for each in given if each.compare]
        if len(compared) > 1:
            return operator.attrgetter(*compared)
        return lambda self: tuple(getattr(self, name) for name in compared)

    def _comparing(key):
        def equal(self, other):
            return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

        return equal

    def _hashing(key):
        def hashed(self):
            return hash(key(self))

        return hashed

    def _printing(given):
        names = [each.name for each in given if each.repr]

        @reprlib.recursive_repr()
        def printed(self):
            return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

        return printed

    def _keeping(cls, names):
        def assign(self, name, value):
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def delete(self, name):
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        return assign, delete
