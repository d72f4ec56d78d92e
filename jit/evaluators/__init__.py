"""What imported models were made from, run by the systems that they come from: `check` holds the import against them."""
