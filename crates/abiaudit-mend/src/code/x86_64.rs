//! References of x86-64 instructions: near branches and operands relative to the instruction pointer.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

use super::{Reference, ReferenceKind};

/// See [`super::Decode`]. Bytes that are no instruction are skipped one at a time.
pub(super) fn references(code: &[u8], address: u64, end: u64, visit: &mut dyn FnMut(Reference)) {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() && decoder.ip() < end {
        decoder.decode_out(&mut instruction);
        let from = instruction.ip();
        if matches!(instruction.op0_kind(), OpKind::NearBranch64) {
            let kind = if instruction.mnemonic() == Mnemonic::Call {
                ReferenceKind::Call
            } else {
                ReferenceKind::Jump
            };
            visit(Reference { from, to: instruction.near_branch64(), kind });
        } else if instruction.is_ip_rel_memory_operand() {
            let is_address = instruction.mnemonic() == Mnemonic::Lea;
            let kind = if is_address { ReferenceKind::Address } else { ReferenceKind::Memory };
            visit(Reference { from, to: instruction.ip_rel_memory_address(), kind });
        }
    }
}
