"""What the programs share; imports none of them."""
