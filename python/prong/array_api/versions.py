"""The editions of the standard that the namespace serves; each holds the ones before it."""

NEWEST = "2024.12"
SERVED = ("2021.12", "2022.12", "2023.12", NEWEST)


def check(version: str | None) -> None:
    """Raises for an edition that is not served."""
    if version is not None and version not in SERVED:
        raise ValueError(
            f"__array_namespace__: there is no version {version!r} here, only {', '.join(SERVED)}"
        )
