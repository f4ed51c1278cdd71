"""The bills of materials: CycloneDX documents of the wheel and of the images. Pure but for archive.py."""
