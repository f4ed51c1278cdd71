"""Sockets that listen, made from endpoints or inherited, and the descriptors for connections."""
