"""kinst.runtime shows the names that are public, and each of them is there."""

import kinst.runtime


def test_dir_shows_the_public_names() -> None:
    assert dir(kinst.runtime) == sorted(kinst.runtime.__all__)
    assert len(kinst.runtime.__all__) > 20
    assert all(getattr(kinst.runtime, name) is not None for name in dir(kinst.runtime))
