"""BTF of kernel modules, which goes on from that of their kernel, whole and damaged."""

import random

import pytest

from kinst.targets.c_types import Function, Integer, Member, Pointer, Typedef, alignment_of, size_of
from kinst.targets.debuginfo.btf import BtfTypes, btf_types
from kinst.targets.errors import ImageError
from tests.targets.debuginfo.btf_writer import File, Section, Split, plain

INT = Integer("int", 4, is_signed=True)


def kernel_and_module() -> tuple[Section, Split]:
    kernel = Section()
    integer = kernel.integer("int", 4, 1)
    shared = kernel.struct("shared", 8, ("first", integer, 0), ("second", integer, 32))
    module = Split(kernel)
    own = module.struct("own", 16, ("shared", shared, 0), ("own_value", integer, 64))
    module.add("own_t", 8, own)
    module.add("own_mode", 6, 4, module.name("OWN_OFF"), 0, module.name("OWN_ON"), 9, length=2)
    module.add("work", 12, module.prototype(integer, ("from", module.add("", 2, own))))
    module.add("later", 8, module.add("shared", 7, 0))
    return kernel, module


def test_a_module_goes_on_where_its_kernel_ends() -> None:
    kernel, module = kernel_and_module()
    base = kernel.decoded()
    types = BtfTypes(module.data, "module", base)
    own, shared = plain("own", types.type_named("struct own")), plain("shared", base.type_named("struct shared"))
    assert own.members == (Member("shared", shared, 0), Member("own_value", INT, 8))
    assert (own.module, shared.module) == ("module", "kernel")
    assert types.type_named("own_t") == Typedef("own_t", own)
    assert types.type_named("later") == Typedef("later", shared)
    found = types.enumerator("OWN_ON")
    assert found is not None and (found[0].tag, found[1]) == ("own_mode", 9)
    assert types.function("work") == Function(INT, (Pointer(own),))
    assert types.type_named("struct shared") is shared  # the module declares it
    assert types.type_named("int") is None  # that is asked of the kernel
    assert base.type_named("struct own") is None


def test_what_is_split_is_not_whole() -> None:
    kernel, module = kernel_and_module()
    assert kernel.decoded().is_whole
    assert not BtfTypes(module.data, "module").is_whole


def test_a_module_without_its_kernel_has_no_types() -> None:
    kernel, module = kernel_and_module()
    assert btf_types(File.of(_BTF=module.data), "module") is None
    assert btf_types(File.of(_BTF=module.data), "module", kernel.decoded()) is not None
    assert btf_types(File.of(), "module") is None


def test_a_distilled_base_leads_to_the_kernels_types() -> None:
    """.BTF.base has struct shared without its members, at another number than the kernel that runs."""
    distilled = Section()
    integer = distilled.integer("int", 4, 1)
    shared = distilled.struct("shared", 8)
    module = Split(distilled)
    module.struct("own", 16, ("shared", shared, 0), ("own_value", integer, 64))
    kernel, _ = kernel_and_module()
    base = kernel.decoded()
    types = btf_types(File.of(_BTF=module.data, _BTF_base=distilled.data), "module", base)
    assert types is not None
    own = plain("own", types.type_named("struct own"))
    assert own.members is not None and own.members[0].type is base.type_named("struct shared")


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_section_is_no_error(seed: int) -> None:
    """Random bytes written over it, or its end cut off."""
    choose = random.Random(seed)
    kernel, module = kernel_and_module()
    data = bytearray(choose.choice([kernel, module]).data)
    for _ in range(choose.randrange(1, 12)):
        data[choose.randrange(len(data))] = choose.choice([0, 0xFF, choose.randrange(256)])
    cut = bytes(data[: choose.randrange(len(data))]) if seed % 4 == 0 else bytes(data)
    try:
        types = btf_types(File.of(_BTF=cut), "module", kernel.decoded())
    except ImageError as error:
        assert ": .BTF: " in str(error)
        return
    if types is None:
        return
    for name in ("struct own", "struct shared", "own_t", "int", "later", "enum own_mode"):
        found = types.type_named(name)
        assert found is None or size_of(found) is None or alignment_of(found) > 0
    for name in ("OWN_ON", "OWN_OFF", "work"):
        assert types.enumerator(name) is None or types.enumerator(name) is not None
        assert types.variable(name) is None or types.variable(name) is not None
