"""libcrypto: every cipher, digest, curve, and arithmetic of large numbers; a line for each."""

import ctypes
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p, create_string_buffer

from digests import LENGTHS, Told, fixed, library

crypto = library("libcrypto.so.3")
_POINTERS = (
    "EVP_CIPHER_CTX_new EVP_MD_CTX_new EVP_CIPHER_get0_name EVP_MD_get0_name EVP_PKEY_new_raw_private_key BN_new "
    "BN_CTX_new BN_bin2bn EC_GROUP_new_by_curve_name EC_POINT_new OSSL_PROVIDER_load EVP_PKEY_CTX_new BN_MONT_CTX_new"
)
for _name in _POINTERS.split():
    getattr(crypto, _name).restype = c_void_p
crypto.EVP_CIPHER_get0_name.restype = crypto.EVP_MD_get0_name.restype = c_char_p
_VISITOR = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
_CCM, _WRAP, _XTS = 7, 0x10002, 0x10001
_IS_FEW = "few" in sys.argv[1:]  # for emulated programs
_CHUNKS = (1, 15, 16, 17, 63, 64, 65, 128, 255, 256, 257, 600, 4096, 5000, 20000)
_BITS = (128, 256, 384, 512, 1000, 1024, 1536, 2048, 4096)
if _IS_FEW:
    _CHUNKS, _BITS = _CHUNKS[:12], (128, 256, 512, 1000, 1024, 2048)


def provided(walk, up, name):
    """All of a kind, by name."""
    found = {}

    def visit(one, _):
        up(c_void_p(one))
        found[name(c_void_p(one)).decode()] = one

    walk(None, _VISITOR(visit), None)
    return sorted(found.items())


def encrypted(cipher, key, vector, chunks, is_encryption):
    """Output and tag of a cipher that is given some bytes at a time, and what each call said."""
    context = c_void_p(crypto.EVP_CIPHER_CTX_new())
    crypto.EVP_CIPHER_CTX_set_flags(context, 1)
    said = [crypto.EVP_CipherInit_ex(context, c_void_p(cipher), None, key, vector, is_encryption)]
    out, data = b"", b"".join(chunks)
    if crypto.EVP_CIPHER_get_mode(c_void_p(cipher)) == _CCM:
        said.append(crypto.EVP_CipherUpdate(context, None, byref(c_int()), None, len(data)))
    for chunk in chunks:
        room, size = create_string_buffer(len(chunk) + 128), c_int(0)
        said.append(crypto.EVP_CipherUpdate(context, room, byref(size), chunk, len(chunk)))
        out += room.raw[: size.value]
    room, size = create_string_buffer(256), c_int(0)
    said.append(crypto.EVP_CipherFinal_ex(context, room, byref(size)))
    out += room.raw[: size.value]
    tag = create_string_buffer(16)
    said.append(crypto.EVP_CIPHER_CTX_ctrl(context, 0x10, 16, tag))
    crypto.EVP_CIPHER_CTX_free(context)
    return out, tag.raw, said


def ciphers():
    for name, cipher in provided(
        crypto.EVP_CIPHER_do_all_provided, crypto.EVP_CIPHER_up_ref, crypto.EVP_CIPHER_get0_name
    ):
        if name == "DES3-WRAP":
            continue  # its vector is random
        told, mode = Told(f"cipher {name}"), crypto.EVP_CIPHER_get_mode(c_void_p(cipher))
        key = fixed(max(1, crypto.EVP_CIPHER_get_key_length(c_void_p(cipher))), b"key")
        vector = fixed(max(16, crypto.EVP_CIPHER_get_iv_length(c_void_p(cipher))), b"iv")
        is_whole = mode in (_CCM, _WRAP, _XTS, 0x10003, 0x10004) or "CTS" in name or "GCM-SIV" in name
        runs = [[fixed(length)] for length in LENGTHS]
        runs += [] if is_whole else [[fixed(chunk) for chunk in _CHUNKS], [fixed(chunk) for chunk in _CHUNKS[::-1]]]
        for chunks in runs:
            out, tag, said = encrypted(cipher, key, vector, chunks, 1)
            told.add(out, tag, said)
            back, _, said = encrypted(cipher, key, vector, [out], 0)
            told.add(back, said)
        told.tell()


def digests():
    for name, digest in provided(crypto.EVP_MD_do_all_provided, crypto.EVP_MD_up_ref, crypto.EVP_MD_get0_name):
        told = Told(f"digest {name}")
        for length in LENGTHS:
            context, room, size = c_void_p(crypto.EVP_MD_CTX_new()), create_string_buffer(64), ctypes.c_uint(0)
            told.add(crypto.EVP_DigestInit_ex(context, c_void_p(digest), None))
            for part in (fixed(length), fixed(length % 77), fixed(length * 2)):
                told.add(crypto.EVP_DigestUpdate(context, part, c_size_t(len(part))))
            told.add(crypto.EVP_DigestFinal_ex(context, room, byref(size)), room.raw[: size.value])
            crypto.EVP_MD_CTX_free(context)
        told.tell()


def number(data):
    return c_void_p(crypto.BN_bin2bn(data, len(data), None))


def text(value):
    room = create_string_buffer(crypto.BN_num_bits(value) // 8 + 1)
    return room.raw[: crypto.BN_bn2bin(value, room)]


def numbers():
    context = c_void_p(crypto.BN_CTX_new())
    for bits in _BITS:
        told, size = Told(f"numbers of {bits} bits"), bits // 8
        odd = b"\xff" + fixed(size - 2, b"m") + b"\x01"
        one, two, modulus, out = number(fixed(size, b"a")), number(fixed(size, b"b")), number(odd), number(b"")
        for call in (crypto.BN_mod_exp, crypto.BN_mod_mul, crypto.BN_mod_exp_mont_consttime):
            more = (context, None) if call is crypto.BN_mod_exp_mont_consttime else (context,)
            told.add(call(out, one, two, modulus, *more), text(out))
        told.add(crypto.BN_mul(out, one, two, context), text(out))
        told.add(crypto.BN_sqr(out, one, context), text(out))
        told.add(crypto.BN_div(out, None, one, modulus, context), text(out))
        told.add(bool(crypto.BN_mod_inverse(out, one, modulus, context)), text(out))
        told.tell()


def curves():
    size = crypto.EC_get_builtin_curves(None, c_size_t(0))
    table = (ctypes.c_ubyte * (16 * size))()
    crypto.EC_get_builtin_curves(table, c_size_t(size))
    context = c_void_p(crypto.BN_CTX_new())
    for row in range(0, size, 13 if _IS_FEW else 1):
        name = int.from_bytes(bytes(table[16 * row : 16 * row + 4]), "little")
        group, told = c_void_p(crypto.EC_GROUP_new_by_curve_name(name)), Told(f"curve {name}")
        point, other = c_void_p(crypto.EC_POINT_new(group)), c_void_p(crypto.EC_POINT_new(group))
        for seed in (b"x", b"y"):
            told.add(crypto.EC_POINT_mul(group, point, number(fixed(20, seed)), None, None, context))
            told.add(
                crypto.EC_POINT_mul(group, other, number(fixed(19, seed)), point, number(fixed(18, seed)), context)
            )
            told.add(crypto.EC_POINT_is_on_curve(group, other, context))
            room = create_string_buffer(300)
            length = crypto.EC_POINT_point2oct(group, other, 4, room, c_size_t(300), context)
            told.add(room.raw[:length])
        told.tell()


def keys():
    for kind, size in ((1087, 32), (1088, 57)):
        key = c_void_p(crypto.EVP_PKEY_new_raw_private_key(kind, None, fixed(size), c_size_t(size)))
        context, room, length, told = (
            c_void_p(crypto.EVP_MD_CTX_new()),
            create_string_buffer(200),
            c_size_t(200),
            Told(f"signature {kind}"),
        )
        told.add(crypto.EVP_DigestSignInit(context, None, None, None, key))
        told.add(
            crypto.EVP_DigestSign(context, room, byref(length), fixed(333), c_size_t(333)), room.raw[: length.value]
        )
        context = c_void_p(crypto.EVP_MD_CTX_new())
        told.add(crypto.EVP_DigestVerifyInit(context, None, None, None, key))
        told.add(crypto.EVP_DigestVerify(context, room, length, fixed(333), c_size_t(333)))
        told.tell()
    for kind, size in ((1034, 32), (1035, 56)):
        pair = [
            c_void_p(crypto.EVP_PKEY_new_raw_private_key(kind, None, fixed(size, seed), c_size_t(size)))
            for seed in (b"1", b"2")
        ]
        context, room, length, told = (
            c_void_p(crypto.EVP_PKEY_CTX_new(pair[0], None)),
            create_string_buffer(64),
            c_size_t(64),
            Told(f"agreement {kind}"),
        )
        told.add(crypto.EVP_PKEY_derive_init(context), crypto.EVP_PKEY_derive_set_peer(context, pair[1]))
        told.add(crypto.EVP_PKEY_derive(context, room, byref(length)), room.raw)
        told.tell()


crypto.OSSL_PROVIDER_load(None, b"default")
crypto.OSSL_PROVIDER_load(None, b"legacy")
for part in (ciphers, digests, numbers, curves, keys):
    part()
