"""XXH3-128 with seed 0 for inputs of any length, canonical big-endian hexadecimal form.

Written from the public specification of xxHash for clause 13 of detrun-numerics(7).
Shares no code with the program or with the xxHash library.
"""

import struct

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1

PRIME32_1, PRIME32_2, PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
PRIME64_1, PRIME64_2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
PRIME64_3, PRIME64_4 = 0x165667B19E3779F9, 0x85EBCA77C2B2AE63
PRIME64_5 = 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")

STRIPE = 64
BLOCK = 1024


def _word(data, offset):
    return int.from_bytes(data[offset:offset + 8], "little")


def _half_word(data, offset):
    return int.from_bytes(data[offset:offset + 4], "little")


def _swap(value, size):
    return int.from_bytes(value.to_bytes(size, "little"), "big")


def _fold(a, b):
    product = a * b
    return (product & MASK64) ^ (product >> 64)


def _avalanche(x):
    x ^= x >> 37
    x = x * PRIME_MX1 & MASK64
    return x ^ (x >> 32)


def _avalanche_xxh64(x):
    x ^= x >> 33
    x = x * PRIME64_2 & MASK64
    x ^= x >> 29
    x = x * PRIME64_3 & MASK64
    return x ^ (x >> 32)


def _empty():
    low = _avalanche_xxh64(_word(SECRET, 64) ^ _word(SECRET, 72))
    return low, _avalanche_xxh64(_word(SECRET, 80) ^ _word(SECRET, 88))


def _from_1_to_3(data):
    size = len(data)
    combined = data[-1] | size << 8 | data[0] << 16 | data[size >> 1] << 24
    swapped = _swap(combined, 4)
    turned = (swapped << 13 | swapped >> 19) & MASK32
    low = _half_word(SECRET, 0) ^ _half_word(SECRET, 4) ^ combined
    high = _half_word(SECRET, 8) ^ _half_word(SECRET, 12) ^ turned
    return _avalanche_xxh64(low), _avalanche_xxh64(high)


def _from_4_to_8(data):
    size = len(data)
    combined = _half_word(data, 0) | _half_word(data, size - 4) << 32
    value = _word(SECRET, 16) ^ _word(SECRET, 24) ^ combined
    product = value * (PRIME64_1 + (size << 2))
    low, high = product & MASK64, product >> 64
    high = (high + (low << 1)) & MASK64
    low ^= high >> 3
    low ^= low >> 35
    low = low * PRIME_MX2 & MASK64
    return low ^ (low >> 28), _avalanche(high)


def _from_9_to_16(data):
    size = len(data)
    first, last = _word(data, 0), _word(data, size - 8)
    one = _word(SECRET, 32) ^ _word(SECRET, 40) ^ first ^ last
    two = _word(SECRET, 48) ^ _word(SECRET, 56) ^ last
    product = one * PRIME64_1
    low = ((product & MASK64) + (size - 1 << 54)) & MASK64
    high = (product >> 64) + (two >> 32 << 32) + (two & MASK32) * PRIME32_2 & MASK64
    low ^= _swap(high, 8)
    product = low * PRIME64_2
    high = (product >> 64) + high * PRIME64_2 & MASK64
    return _avalanche(product & MASK64), _avalanche(high)


def _mix_step(data, offset, secret_offset):
    return _fold(_word(data, offset) ^ _word(SECRET, secret_offset),
                 _word(data, offset + 8) ^ _word(SECRET, secret_offset + 8))


def _mix_two(acc, data, one, two, secret_offset):
    low = acc[0] + _mix_step(data, one, secret_offset) & MASK64
    high = acc[1] + _mix_step(data, two, secret_offset + 16) & MASK64
    acc[0] = low ^ (_word(data, two) + _word(data, two + 8) & MASK64)
    acc[1] = high ^ (_word(data, one) + _word(data, one + 8) & MASK64)


def _from_17_to_240(data):
    size = len(data)
    acc = [size * PRIME64_1 & MASK64, 0]
    if size <= 128:
        for i in reversed(range((size - 1 >> 5) + 1)):
            _mix_two(acc, data, i * 16, size - i * 16 - 16, i * 32)
    else:
        for i in range(4):
            _mix_two(acc, data, i * 32, i * 32 + 16, i * 32)
        acc = [_avalanche(acc[0]), _avalanche(acc[1])]
        for i in range(4, size >> 5):
            _mix_two(acc, data, i * 32, i * 32 + 16, (i - 4) * 32 + 3)
        _mix_two(acc, data, size - 16, size - 32, 103)
    low = acc[0] + acc[1] & MASK64
    high = acc[0] * PRIME64_1 + acc[1] * PRIME64_4 + size * PRIME64_2 & MASK64
    return _avalanche(low), -_avalanche(high) & MASK64


def _accumulate(acc, data, offset, secret_offset):
    stripe = struct.unpack_from("<8Q", data, offset)
    secret = struct.unpack_from("<8Q", SECRET, secret_offset)
    for i in range(8):
        value = stripe[i] ^ secret[i]
        acc[i ^ 1] = acc[i ^ 1] + stripe[i] & MASK64
        acc[i] = acc[i] + (value & MASK32) * (value >> 32) & MASK64


def _scramble(acc):
    secret = struct.unpack_from("<8Q", SECRET, len(SECRET) - STRIPE)
    for i in range(8):
        acc[i] = (acc[i] ^ (acc[i] >> 47) ^ secret[i]) * PRIME32_1 & MASK64


def _merge(acc, start, secret_offset):
    secret = struct.unpack_from("<8Q", SECRET, secret_offset)
    result = start
    for i in range(0, 8, 2):
        result += _fold(acc[i] ^ secret[i], acc[i + 1] ^ secret[i + 1])
    return _avalanche(result & MASK64)


def _from_241(data):
    size = len(data)
    acc = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1]
    last_block = (size - 1) // BLOCK * BLOCK
    for block in range(0, last_block, BLOCK):
        for n in range(BLOCK // STRIPE):
            _accumulate(acc, data, block + n * STRIPE, n * 8)
        _scramble(acc)
    for n in range((size - last_block - 1) // STRIPE):
        _accumulate(acc, data, last_block + n * STRIPE, n * 8)
    _accumulate(acc, data, size - STRIPE, len(SECRET) - 71)
    low = _merge(acc, size * PRIME64_1 & MASK64, 11)
    return low, _merge(acc, ~(size * PRIME64_2) & MASK64, len(SECRET) - 75)


def xxh3_128(data):
    """The canonical form, 32 lower-case hexadecimal digits, most significant first."""
    size = len(data)
    if size == 0:
        low, high = _empty()
    elif size <= 3:
        low, high = _from_1_to_3(data)
    elif size <= 8:
        low, high = _from_4_to_8(data)
    elif size <= 16:
        low, high = _from_9_to_16(data)
    elif size <= 240:
        low, high = _from_17_to_240(data)
    else:
        low, high = _from_241(data)
    return "%016x%016x" % (high, low)
