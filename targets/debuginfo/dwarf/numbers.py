"""The numbers of DWARF that we read, by name: one table, with the values of pyelftools."""

from enum import IntEnum

from elftools.dwarf.dwarf_expr import DW_OP_name2opcode
from elftools.dwarf.enums import (
    ENUM_DW_AT,
    ENUM_DW_FORM,
    ENUM_DW_LLE,
    ENUM_DW_LNCT,
    ENUM_DW_RLE,
    ENUM_DW_TAG,
    ENUM_DW_UT,
)


class Tag(IntEnum):
    """DW_TAG_: what an entry describes."""

    ARRAY_TYPE = ENUM_DW_TAG["DW_TAG_array_type"]
    CLASS_TYPE = ENUM_DW_TAG["DW_TAG_class_type"]
    ENUMERATION_TYPE = ENUM_DW_TAG["DW_TAG_enumeration_type"]
    FORMAL_PARAMETER = ENUM_DW_TAG["DW_TAG_formal_parameter"]
    LEXICAL_BLOCK = ENUM_DW_TAG["DW_TAG_lexical_block"]
    MEMBER = ENUM_DW_TAG["DW_TAG_member"]
    POINTER_TYPE = ENUM_DW_TAG["DW_TAG_pointer_type"]
    REFERENCE_TYPE = ENUM_DW_TAG["DW_TAG_reference_type"]
    COMPILE_UNIT = ENUM_DW_TAG["DW_TAG_compile_unit"]
    STRUCTURE_TYPE = ENUM_DW_TAG["DW_TAG_structure_type"]
    SUBROUTINE_TYPE = ENUM_DW_TAG["DW_TAG_subroutine_type"]
    TYPEDEF = ENUM_DW_TAG["DW_TAG_typedef"]
    UNION_TYPE = ENUM_DW_TAG["DW_TAG_union_type"]
    UNSPECIFIED_PARAMETERS = ENUM_DW_TAG["DW_TAG_unspecified_parameters"]
    INLINED_SUBROUTINE = ENUM_DW_TAG["DW_TAG_inlined_subroutine"]
    MODULE = ENUM_DW_TAG["DW_TAG_module"]
    PTR_TO_MEMBER_TYPE = ENUM_DW_TAG["DW_TAG_ptr_to_member_type"]
    SUBRANGE_TYPE = ENUM_DW_TAG["DW_TAG_subrange_type"]
    BASE_TYPE = ENUM_DW_TAG["DW_TAG_base_type"]
    CONST_TYPE = ENUM_DW_TAG["DW_TAG_const_type"]
    ENUMERATOR = ENUM_DW_TAG["DW_TAG_enumerator"]
    PACKED_TYPE = ENUM_DW_TAG["DW_TAG_packed_type"]
    SUBPROGRAM = ENUM_DW_TAG["DW_TAG_subprogram"]
    VARIABLE = ENUM_DW_TAG["DW_TAG_variable"]
    VOLATILE_TYPE = ENUM_DW_TAG["DW_TAG_volatile_type"]
    RESTRICT_TYPE = ENUM_DW_TAG["DW_TAG_restrict_type"]
    NAMESPACE = ENUM_DW_TAG["DW_TAG_namespace"]
    UNSPECIFIED_TYPE = ENUM_DW_TAG["DW_TAG_unspecified_type"]
    PARTIAL_UNIT = ENUM_DW_TAG["DW_TAG_partial_unit"]
    SHARED_TYPE = ENUM_DW_TAG["DW_TAG_shared_type"]
    TYPE_UNIT = ENUM_DW_TAG["DW_TAG_type_unit"]
    RVALUE_REFERENCE_TYPE = ENUM_DW_TAG["DW_TAG_rvalue_reference_type"]
    ATOMIC_TYPE = ENUM_DW_TAG["DW_TAG_atomic_type"]
    CALL_SITE = ENUM_DW_TAG["DW_TAG_call_site"]
    CALL_SITE_PARAMETER = ENUM_DW_TAG["DW_TAG_call_site_parameter"]
    IMMUTABLE_TYPE = ENUM_DW_TAG["DW_TAG_immutable_type"]
    GNU_CALL_SITE = ENUM_DW_TAG["DW_TAG_GNU_call_site"]
    GNU_CALL_SITE_PARAMETER = ENUM_DW_TAG["DW_TAG_GNU_call_site_parameter"]


class At(IntEnum):
    """DW_AT_: what an entry says."""

    SIBLING = ENUM_DW_AT["DW_AT_sibling"]
    LOCATION = ENUM_DW_AT["DW_AT_location"]
    NAME = ENUM_DW_AT["DW_AT_name"]
    BYTE_SIZE = ENUM_DW_AT["DW_AT_byte_size"]
    BIT_OFFSET = ENUM_DW_AT["DW_AT_bit_offset"]
    BIT_SIZE = ENUM_DW_AT["DW_AT_bit_size"]
    STMT_LIST = ENUM_DW_AT["DW_AT_stmt_list"]
    LOW_PC = ENUM_DW_AT["DW_AT_low_pc"]
    HIGH_PC = ENUM_DW_AT["DW_AT_high_pc"]
    COMP_DIR = ENUM_DW_AT["DW_AT_comp_dir"]
    CONST_VALUE = ENUM_DW_AT["DW_AT_const_value"]
    INLINE = ENUM_DW_AT["DW_AT_inline"]
    LOWER_BOUND = ENUM_DW_AT["DW_AT_lower_bound"]
    PROTOTYPED = ENUM_DW_AT["DW_AT_prototyped"]
    UPPER_BOUND = ENUM_DW_AT["DW_AT_upper_bound"]
    ABSTRACT_ORIGIN = ENUM_DW_AT["DW_AT_abstract_origin"]
    COUNT = ENUM_DW_AT["DW_AT_count"]
    DATA_MEMBER_LOCATION = ENUM_DW_AT["DW_AT_data_member_location"]
    DECL_FILE = ENUM_DW_AT["DW_AT_decl_file"]
    DECL_LINE = ENUM_DW_AT["DW_AT_decl_line"]
    DECLARATION = ENUM_DW_AT["DW_AT_declaration"]
    ENCODING = ENUM_DW_AT["DW_AT_encoding"]
    EXTERNAL = ENUM_DW_AT["DW_AT_external"]
    FRAME_BASE = ENUM_DW_AT["DW_AT_frame_base"]
    SPECIFICATION = ENUM_DW_AT["DW_AT_specification"]
    TYPE = ENUM_DW_AT["DW_AT_type"]
    ENTRY_PC = ENUM_DW_AT["DW_AT_entry_pc"]
    RANGES = ENUM_DW_AT["DW_AT_ranges"]
    CALL_FILE = ENUM_DW_AT["DW_AT_call_file"]
    CALL_LINE = ENUM_DW_AT["DW_AT_call_line"]
    SIGNATURE = ENUM_DW_AT["DW_AT_signature"]
    DATA_BIT_OFFSET = ENUM_DW_AT["DW_AT_data_bit_offset"]
    LINKAGE_NAME = ENUM_DW_AT["DW_AT_linkage_name"]
    STR_OFFSETS_BASE = ENUM_DW_AT["DW_AT_str_offsets_base"]
    ADDR_BASE = ENUM_DW_AT["DW_AT_addr_base"]
    RNGLISTS_BASE = ENUM_DW_AT["DW_AT_rnglists_base"]
    DWO_NAME = ENUM_DW_AT["DW_AT_dwo_name"]
    CALL_ALL_CALLS = ENUM_DW_AT["DW_AT_call_all_calls"]
    CALL_ALL_SOURCE_CALLS = ENUM_DW_AT["DW_AT_call_all_source_calls"]
    CALL_ALL_TAIL_CALLS = ENUM_DW_AT["DW_AT_call_all_tail_calls"]
    CALL_RETURN_PC = ENUM_DW_AT["DW_AT_call_return_pc"]
    CALL_VALUE = ENUM_DW_AT["DW_AT_call_value"]
    CALL_PARAMETER = ENUM_DW_AT["DW_AT_call_parameter"]
    CALL_PC = ENUM_DW_AT["DW_AT_call_pc"]
    CALL_TAIL_CALL = ENUM_DW_AT["DW_AT_call_tail_call"]
    CALL_TARGET = ENUM_DW_AT["DW_AT_call_target"]
    CALL_DATA_VALUE = ENUM_DW_AT["DW_AT_call_data_value"]
    ALIGNMENT = ENUM_DW_AT["DW_AT_alignment"]
    LOCLISTS_BASE = ENUM_DW_AT["DW_AT_loclists_base"]
    MIPS_LINKAGE_NAME = ENUM_DW_AT["DW_AT_MIPS_linkage_name"]
    GNU_CALL_SITE_VALUE = ENUM_DW_AT["DW_AT_GNU_call_site_value"]
    GNU_CALL_SITE_DATA_VALUE = ENUM_DW_AT["DW_AT_GNU_call_site_data_value"]
    GNU_CALL_SITE_TARGET = ENUM_DW_AT["DW_AT_GNU_call_site_target"]
    GNU_TAIL_CALL = ENUM_DW_AT["DW_AT_GNU_tail_call"]
    GNU_ALL_TAIL_CALL_SITES = ENUM_DW_AT["DW_AT_GNU_all_tail_call_sites"]
    GNU_ALL_CALL_SITES = ENUM_DW_AT["DW_AT_GNU_all_call_sites"]
    GNU_ALL_SOURCE_CALL_SITES = ENUM_DW_AT["DW_AT_GNU_all_source_call_sites"]
    GNU_DWO_NAME = ENUM_DW_AT["DW_AT_GNU_dwo_name"]
    GNU_RANGES_BASE = ENUM_DW_AT["DW_AT_GNU_ranges_base"]
    GNU_ADDR_BASE = ENUM_DW_AT["DW_AT_GNU_addr_base"]


class Form(IntEnum):
    """DW_FORM_: how a value is written, with GNU's older split DWARF and dwz."""

    ADDR = ENUM_DW_FORM["DW_FORM_addr"]
    BLOCK2 = ENUM_DW_FORM["DW_FORM_block2"]
    BLOCK4 = ENUM_DW_FORM["DW_FORM_block4"]
    DATA2 = ENUM_DW_FORM["DW_FORM_data2"]
    DATA4 = ENUM_DW_FORM["DW_FORM_data4"]
    DATA8 = ENUM_DW_FORM["DW_FORM_data8"]
    STRING = ENUM_DW_FORM["DW_FORM_string"]
    BLOCK = ENUM_DW_FORM["DW_FORM_block"]
    BLOCK1 = ENUM_DW_FORM["DW_FORM_block1"]
    DATA1 = ENUM_DW_FORM["DW_FORM_data1"]
    FLAG = ENUM_DW_FORM["DW_FORM_flag"]
    SDATA = ENUM_DW_FORM["DW_FORM_sdata"]
    STRP = ENUM_DW_FORM["DW_FORM_strp"]
    UDATA = ENUM_DW_FORM["DW_FORM_udata"]
    REF_ADDR = ENUM_DW_FORM["DW_FORM_ref_addr"]
    REF1 = ENUM_DW_FORM["DW_FORM_ref1"]
    REF2 = ENUM_DW_FORM["DW_FORM_ref2"]
    REF4 = ENUM_DW_FORM["DW_FORM_ref4"]
    REF8 = ENUM_DW_FORM["DW_FORM_ref8"]
    REF_UDATA = ENUM_DW_FORM["DW_FORM_ref_udata"]
    INDIRECT = ENUM_DW_FORM["DW_FORM_indirect"]
    SEC_OFFSET = ENUM_DW_FORM["DW_FORM_sec_offset"]
    EXPRLOC = ENUM_DW_FORM["DW_FORM_exprloc"]
    FLAG_PRESENT = ENUM_DW_FORM["DW_FORM_flag_present"]
    STRX = ENUM_DW_FORM["DW_FORM_strx"]
    ADDRX = ENUM_DW_FORM["DW_FORM_addrx"]
    REF_SUP4 = ENUM_DW_FORM["DW_FORM_ref_sup4"]
    STRP_SUP = ENUM_DW_FORM["DW_FORM_strp_sup"]
    DATA16 = ENUM_DW_FORM["DW_FORM_data16"]
    LINE_STRP = ENUM_DW_FORM["DW_FORM_line_strp"]
    REF_SIG8 = ENUM_DW_FORM["DW_FORM_ref_sig8"]
    IMPLICIT_CONST = ENUM_DW_FORM["DW_FORM_implicit_const"]
    LOCLISTX = ENUM_DW_FORM["DW_FORM_loclistx"]
    RNGLISTX = ENUM_DW_FORM["DW_FORM_rnglistx"]
    REF_SUP8 = ENUM_DW_FORM["DW_FORM_ref_sup8"]
    STRX1 = ENUM_DW_FORM["DW_FORM_strx1"]
    STRX2 = ENUM_DW_FORM["DW_FORM_strx2"]
    STRX3 = ENUM_DW_FORM["DW_FORM_strx3"]
    STRX4 = ENUM_DW_FORM["DW_FORM_strx4"]
    ADDRX1 = ENUM_DW_FORM["DW_FORM_addrx1"]
    ADDRX2 = ENUM_DW_FORM["DW_FORM_addrx2"]
    ADDRX3 = ENUM_DW_FORM["DW_FORM_addrx3"]
    ADDRX4 = ENUM_DW_FORM["DW_FORM_addrx4"]
    GNU_ADDR_INDEX = ENUM_DW_FORM["DW_FORM_GNU_addr_index"]
    GNU_STR_INDEX = ENUM_DW_FORM["DW_FORM_GNU_str_index"]
    GNU_REF_ALT = ENUM_DW_FORM["DW_FORM_GNU_ref_alt"]
    GNU_STRP_ALT = ENUM_DW_FORM["DW_FORM_GNU_strp_alt"]


class UnitKind(IntEnum):
    """DW_UT_: what kind of unit one is since DWARF 5; before, all are COMPILE."""

    COMPILE = ENUM_DW_UT["DW_UT_compile"]
    TYPE = ENUM_DW_UT["DW_UT_type"]
    SKELETON = ENUM_DW_UT["DW_UT_skeleton"]
    SPLIT_COMPILE = ENUM_DW_UT["DW_UT_split_compile"]
    SPLIT_TYPE = ENUM_DW_UT["DW_UT_split_type"]


class RangeKind(IntEnum):
    """DW_RLE_: an entry of .debug_rnglists."""

    END_OF_LIST = ENUM_DW_RLE["DW_RLE_end_of_list"]
    BASE_ADDRESSX = ENUM_DW_RLE["DW_RLE_base_addressx"]
    STARTX_ENDX = ENUM_DW_RLE["DW_RLE_startx_endx"]
    STARTX_LENGTH = ENUM_DW_RLE["DW_RLE_startx_length"]
    OFFSET_PAIR = ENUM_DW_RLE["DW_RLE_offset_pair"]
    BASE_ADDRESS = ENUM_DW_RLE["DW_RLE_base_address"]
    START_END = ENUM_DW_RLE["DW_RLE_start_end"]
    START_LENGTH = ENUM_DW_RLE["DW_RLE_start_length"]


class PlaceKind(IntEnum):
    """DW_LLE_: an entry of .debug_loclists."""

    END_OF_LIST = ENUM_DW_LLE["DW_LLE_end_of_list"]
    BASE_ADDRESSX = ENUM_DW_LLE["DW_LLE_base_addressx"]
    STARTX_ENDX = ENUM_DW_LLE["DW_LLE_startx_endx"]
    STARTX_LENGTH = ENUM_DW_LLE["DW_LLE_startx_length"]
    OFFSET_PAIR = ENUM_DW_LLE["DW_LLE_offset_pair"]
    DEFAULT_LOCATION = ENUM_DW_LLE["DW_LLE_default_location"]
    BASE_ADDRESS = ENUM_DW_LLE["DW_LLE_base_address"]
    START_END = ENUM_DW_LLE["DW_LLE_start_end"]
    START_LENGTH = ENUM_DW_LLE["DW_LLE_start_length"]
    GNU_VIEW_PAIR = 9  # gcc's, which pyelftools lacks


class LineContent(IntEnum):
    """DW_LNCT_: a part of an entry in the lists of files of DWARF 5."""

    PATH = ENUM_DW_LNCT["DW_LNCT_path"]
    DIRECTORY_INDEX = ENUM_DW_LNCT["DW_LNCT_directory_index"]


class Op(IntEnum):
    """DW_OP_: the operations that need no evaluation; all are in `kinst.runtime.unwinding.location_operations`."""

    ADDR = DW_OP_name2opcode["DW_OP_addr"]
    CONSTU = DW_OP_name2opcode["DW_OP_constu"]
    PLUS_UCONST = DW_OP_name2opcode["DW_OP_plus_uconst"]
    ADDRX = DW_OP_name2opcode["DW_OP_addrx"]
