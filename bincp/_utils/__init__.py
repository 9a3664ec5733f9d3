"""What every room uses: arrays and numbers from callers, exact levels, files, pictures."""
