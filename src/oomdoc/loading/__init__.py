"""Members become tables: each read by its ingestor, or gone on with where it grew; whether the bundle is whole."""
