"""The cache's SHA-256 is `hashlib`'s, whichever module makes it; and a start with little to digest loads no OpenSSL."""
from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
from tosaic.jit.cache import sha256 as module
from tosaic.jit.cache.sha256 import OPENSSL_BYTES, sha256


@pytest.mark.parametrize("data", [b"", b"a", bytes(range(256)) * 99, b"x" * OPENSSL_BYTES], ids=len)
def test_the_same(data: bytes) -> None:
    assert sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()
    parts = sha256(nbytes=len(data))
    parts.update(data[:7])
    parts.update(memoryview(data)[7:])
    assert parts.digest() == hashlib.sha256(data).digest()


def test_without_python_s_own_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MODULES", ("none_of_that_name",))
    module.own.cache_clear()
    assert sha256(b"a").hexdigest() == hashlib.sha256(b"a").hexdigest()
    module.own.cache_clear()


def test_little_is_digested_without_openssl() -> None:
    code = "import sys; from tosaic.jit.cache.keys import digest; digest((1, 'a')); sys.exit('_hashlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
