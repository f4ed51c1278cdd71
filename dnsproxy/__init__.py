"""A DNS forwarder that answers the hostnames a cluster serves, and the installer of its one CoreDNS stanza."""
