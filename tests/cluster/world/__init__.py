"""The world's programs on the scene's nodes: those that users have beside Switchback, in their real versions.

The law: installed from their own manifests, octet for octet; only the images are built here, under the names that the
manifests have.
"""
