"""What may be touched: paths, files, processes."""
