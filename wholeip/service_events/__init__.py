"""Kubernetes Events about Services of which something is excluded, one for all agents. Pure but for writer.py."""
