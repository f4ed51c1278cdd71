"""Sources: from what a cluster says about itself to claims on hostnames."""
