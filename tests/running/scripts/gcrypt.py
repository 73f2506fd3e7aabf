"""libgcrypt: every cipher in every mode, digest and MAC, and its own tests; a line for each. Words are features of the
CPU that it shall not use."""

import sys
from ctypes import byref, c_char_p, c_size_t, c_void_p, create_string_buffer

from digests import LENGTHS, Told, fixed, library

gcrypt = library("libgcrypt.so.20")
for _name in ("gcry_cipher_algo_name", "gcry_md_algo_name", "gcry_mac_algo_name", "gcry_check_version"):
    getattr(gcrypt, _name).restype = c_char_p
for _name in ("gcry_cipher_get_algo_keylen", "gcry_cipher_get_algo_blklen"):
    getattr(gcrypt, _name).restype = c_size_t


def ciphers():
    for algorithm in range(1, 330):
        if gcrypt.gcry_cipher_algo_info(algorithm, 8, None, None):
            continue
        for mode in range(1, 17):
            told = Told(f"cipher {gcrypt.gcry_cipher_algo_name(algorithm).decode()} {mode}")
            for length in LENGTHS:
                for call in (gcrypt.gcry_cipher_encrypt, gcrypt.gcry_cipher_decrypt):
                    told.add(*once(algorithm, mode, call, length))
            told.tell()


def once(algorithm, mode, call, length):
    handle, block = c_void_p(), gcrypt.gcry_cipher_get_algo_blklen(algorithm)
    yield gcrypt.gcry_cipher_open(byref(handle), algorithm, mode, 0)
    if not handle.value:
        return
    size = gcrypt.gcry_cipher_get_algo_keylen(algorithm) * (2 if mode in (13, 15) else 1)
    yield gcrypt.gcry_cipher_setkey(handle, fixed(size, b"key"), c_size_t(size))
    nonce = 12 if mode in (9, 11, 15) or block == 1 else block
    if mode == 6:
        yield gcrypt.gcry_cipher_setctr(handle, b"\xff" * (block - 1) + b"\xf0", c_size_t(block))
    else:
        yield gcrypt.gcry_cipher_setiv(handle, fixed(nonce, b"iv"), c_size_t(nonce))
    room, tag = create_string_buffer(length + 64), create_string_buffer(16)
    yield call(handle, room, c_size_t(length + 64), fixed(length), c_size_t(length))
    yield room.raw
    yield gcrypt.gcry_cipher_gettag(handle, tag, c_size_t(16))
    yield tag.raw
    gcrypt.gcry_cipher_close(handle)


def digests():
    for algorithm in range(1, 330):
        if gcrypt.gcry_md_test_algo(algorithm):
            continue
        told, size = (
            Told(f"digest {gcrypt.gcry_md_algo_name(algorithm).decode()}"),
            gcrypt.gcry_md_get_algo_dlen(algorithm),
        )
        for length in LENGTHS if size else ():
            room = create_string_buffer(size)
            gcrypt.gcry_md_hash_buffer(algorithm, room, fixed(length), c_size_t(length))
            told.add(room.raw)
        told.tell()


def codes():
    for algorithm in range(1, 800):
        if gcrypt.gcry_mac_test_algo(algorithm):
            continue
        told = Told(f"code {gcrypt.gcry_mac_algo_name(algorithm).decode()}")
        for length in LENGTHS:
            handle, room, size = c_void_p(), create_string_buffer(128), c_size_t(128)
            told.add(gcrypt.gcry_mac_open(byref(handle), algorithm, 0, None))
            keys = gcrypt.gcry_mac_get_algo_keylen(algorithm) or 32
            told.add(gcrypt.gcry_mac_setkey(handle, fixed(keys), c_size_t(keys)))
            told.add(gcrypt.gcry_mac_setiv(handle, fixed(12), c_size_t(12)))
            told.add(gcrypt.gcry_mac_write(handle, fixed(length), c_size_t(length)))
            told.add(gcrypt.gcry_mac_read(handle, room, byref(size)), room.raw[: size.value])
            gcrypt.gcry_mac_close(handle)
        told.tell()


for feature in [word for word in sys.argv[1:] if word != "few"]:
    print("without", feature, gcrypt.gcry_control(63, feature.encode(), None))
print(gcrypt.gcry_check_version(None))
gcrypt.gcry_control(37, 0)
gcrypt.gcry_control(38, 0)
for part in (ciphers, digests, codes):
    part()
print("own tests", gcrypt.gcry_control(57, 0))
