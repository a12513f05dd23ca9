#!/usr/bin/env bash
# One folder with oomdoc and all it needs, packed: for hosts without network. Usage: packaging/airgap.sh PYTHON OUT.tar.gz [pip options]
# Unpack it there and run `oomdoc/oomdoc`; the host needs the same Python (3.x) and platform as the one that made it.
set -euo pipefail
python=$1 out=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --target "$work/oomdoc/lib" "$@" "$(dirname "$0")/.."
cp "$(dirname "$0")/launcher.py" "$work/oomdoc/oomdoc"
chmod 755 "$work/oomdoc/oomdoc"
rm -rf "$work/oomdoc/lib/bin" "$work"/oomdoc/lib/*.dist-info/direct_url.json # the second names the place where it was made
"$python" -c 'import sys; print("{}.{}".format(*sys.version_info))' > "$work/oomdoc/python"
mkdir -p "$(dirname "$out")"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-315532800}" -C "$work" -cf - oomdoc | gzip -n > "$out"
