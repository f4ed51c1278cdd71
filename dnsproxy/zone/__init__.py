"""The table as zones, and their transfer by AXFR, IXFR and NOTIFY: values and octets in, octets out. Pure."""
