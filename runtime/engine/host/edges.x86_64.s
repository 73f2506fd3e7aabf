// Unicorn's callback before each block: (uc, address, size, state). It counts how often the block came after the one
// before, in a byte that stays 255: pairs that share a byte are rare, and are told apart by no one.
//
//   rsi     the block's address
//   rcx     the state
//   rax     its hash; then half of that, so that a pair is not the pair in the other order
//   rdx     the place of the pair

    movabs rax, HASH
    imul rax, rsi
    shr rax, HASH_SHIFT
    mov rdx, rax
    xor rdx, [rcx + state.before]
    shr rax, 1
    mov [rcx + state.before], rax
    add rdx, [rcx + state.map]
    add byte ptr [rdx], 1
    sbb byte ptr [rdx], 0                       // it was 255
    ret
