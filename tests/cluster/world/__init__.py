"""The world's programs on the stage: controllers, certificate authorities and others that we did not write."""
