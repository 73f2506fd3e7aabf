"""nettle: every cipher, authenticated cipher and hash that it lists; a line for each."""

from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_size_t, c_uint, c_void_p, create_string_buffer

from digests import LENGTHS, Told, fixed, library

_KEY = CFUNCTYPE(None, c_void_p, c_char_p)
_CRYPT = CFUNCTYPE(None, c_void_p, c_size_t, c_void_p, c_char_p)
_DATA = CFUNCTYPE(None, c_void_p, c_size_t, c_char_p)
_DIGEST = CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)
_INIT = CFUNCTYPE(None, c_void_p)


class Cipher(Structure):
    _fields_ = [
        ("name", c_char_p), ("context", c_uint), ("block", c_uint), ("key", c_uint), ("to_encrypt", _KEY),
        ("to_decrypt", _KEY), ("encrypt", _CRYPT), ("decrypt", _CRYPT),
    ]  # fmt: skip


class Aead(Structure):
    _fields_ = [
        ("name", c_char_p), ("context", c_uint), ("block", c_uint), ("key", c_uint), ("nonce", c_uint), ("tag", c_uint),
        ("to_encrypt", _KEY), ("to_decrypt", _KEY), ("set_nonce", _KEY), ("update", _DATA), ("encrypt", _CRYPT),
        ("decrypt", _CRYPT), ("digest", _DIGEST),
    ]  # fmt: skip


class Hash(Structure):
    _fields_ = [
        ("name", c_char_p), ("context", c_uint), ("size", c_uint), ("block", c_uint), ("init", _INIT),
        ("update", _DATA), ("digest", _DIGEST),
    ]  # fmt: skip


def listed(call, kind):
    call.restype = POINTER(POINTER(kind))
    found = call()
    row = 0
    while found[row]:
        yield found[row].contents
        row += 1


nettle = library("libnettle.so.8")
for cipher in listed(nettle.nettle_get_ciphers, Cipher):
    told = Told(f"cipher {cipher.name.decode()}")
    for length in LENGTHS:
        size = length - length % max(1, cipher.block)
        for key, crypt in ((cipher.to_encrypt, cipher.encrypt), (cipher.to_decrypt, cipher.decrypt)):
            context, room = create_string_buffer(cipher.context), create_string_buffer(size + 1)
            key(context, fixed(cipher.key, b"key"))
            crypt(context, size, room, fixed(size))
            told.add(room.raw)
    told.tell()
for aead in listed(nettle.nettle_get_aeads, Aead):
    told = Told(f"aead {aead.name.decode()}")
    for length in LENGTHS:
        for key, crypt in ((aead.to_encrypt, aead.encrypt), (aead.to_decrypt, aead.decrypt)):
            context, room, tag = (
                create_string_buffer(aead.context),
                create_string_buffer(length + 1),
                create_string_buffer(16),
            )
            key(context, fixed(aead.key, b"key"))
            if aead.set_nonce:
                aead.set_nonce(context, fixed(aead.nonce))
            if aead.update:
                aead.update(context, 32, fixed(32))
            crypt(context, length, room, fixed(length))
            aead.digest(context, min(16, aead.tag), tag)
            told.add(room.raw, tag.raw)
    told.tell()
for one in listed(nettle.nettle_get_hashes, Hash):
    told = Told(f"hash {one.name.decode()}")
    for length in LENGTHS:
        context, room = create_string_buffer(one.context), create_string_buffer(one.size)
        one.init(context)
        one.update(context, length, fixed(length))
        one.update(context, length % 99, fixed(length % 99))
        one.digest(context, one.size, room)
        told.add(room.raw)
    told.tell()
