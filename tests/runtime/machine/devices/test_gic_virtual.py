from kinst.runtime.machine.devices.arm.gic_virtual import ELRSR, HCR, LR, VTR, HypervisorInterface, VirtualCpuInterface


def test_each_cpu_keeps_its_own_list_registers() -> None:
    current = [0]
    interface = HypervisorInterface(2, lambda: current[0])
    assert (interface.read(VTR, 4) & 0x3F, interface.read(ELRSR, 4)) == (3, 0xF)
    interface.write(LR + 4, 4, 1 << 28 | 27)
    interface.write(HCR, 4, 1)
    assert (interface.read(LR + 4, 4), interface.read(ELRSR, 4), interface.read(HCR, 4)) == (1 << 28 | 27, 0xD, 1)
    current[0] = 1
    assert (interface.read(LR + 4, 4), interface.read(ELRSR, 4), interface.read(HCR, 4)) == (0, 0xF, 0)


def test_guests_have_no_interrupts() -> None:
    assert VirtualCpuInterface().read(0xC, 4) == 1023
