"""The reference client of Koi-Koi Online: rules, mental poker, a seat at the table, and the network around it."""
