"""A machine as strategies, cost models and the emitter see it. `machines` has all known ones."""
from __future__ import annotations

import functools
from dataclasses import replace

from ...runtime.records import dataclass
from .costs import COSTS, Costs
from .features import DotProduct, MatrixType, enabled, float_unit, fused_floats, lacking_integers

SCALAR_REGISTERS = 24
"""Number of registers that tiles of scalars may use, if there are no vectors."""
C_ONLY = {"c99": "it stands for every processor that has a C compiler",
          "xtensa": "LLVM as llvmlite ships it has no back end for Xtensa",
          "avr": "LLVM's back end for AVR would copy all constants from flash to RAM"}
"""Architectures whose code can only be C source, and why."""


@functools.cache
def architecture_of(triple: str) -> str:
    """Return the family of instruction sets of a triple; the emitter calls this for each instruction."""
    first = triple.split("-")[0]
    for family, prefixes in (("x86", ("x86", "i386", "i586", "i686")), ("aarch64", ("aarch64", "arm64")),
                             ("arm", ("arm", "thumb")), ("riscv", ("riscv",))):
        if first.startswith(prefixes):
            return family
    return first


@dataclass(frozen=True, slots=True)
class Target:
    """A machine: LLVM's names for it, its vector unit and its caches. Sizes in bytes, rates per cycle.

    `features` is LLVM's list ("+avx2,-avx512f"); it decides what the emitter may use, and not the name of the processor,
    because a virtual machine may hide features of the processor.
    """
    triple: str
    cpu: str
    features: str
    vector_bytes: int = 16
    """Bytes of a vector; 1 without vector registers: every `lanes` is then 1."""
    widest_element: int = 8
    """Bytes of the widest element that vectors compute with: for wider ones `lanes` is 1."""
    has_float_vectors: bool = True
    """True if vectors compute IEEE floats, including subnormal numbers."""
    vector_registers: int = 16
    fma_per_cycle: float = 2
    loads_per_cycle: float = 2
    fma_latency: int = 4
    has_cache: bool = True
    """True if there is a cache. Without one, memory counts: by default kernels are tiled by rows if that needs less of it."""
    l1_bytes: int = 32 << 10
    """Bytes of the first-level data cache."""
    block_bytes: int = 1 << 19
    """Bytes that a large product reads repeatedly: half of the second-level cache."""
    l2_bytes: int = 1 << 20
    streaming_bytes: int = 8 << 20
    dot_product: DotProduct | None = None
    """Types of the products of bytes that vectors sum four to a lane."""
    has_lane_products: bool = False
    """True if products and sums of products take one lane of a vector as a factor of all lanes."""
    has_byte_pairs: bool = False
    """True if products of eight bytes of two rows and two columns are added to four sums in one instruction (SMMLA)."""
    has_widening_products: bool = False
    """True if vectors of 8 or 16 bits are multiplied by a scalar and added to sums of twice or four times the size."""
    rounds_words: bool = False
    """True if vectors have rounded upper halves of doubled products and rounding shifts of 32 bits."""
    packed_vector_bytes: int = 32
    """Minimum bytes of vectors of words that are narrowed to bytes by instructions that clip two of them at once; 0 without
    such instructions."""
    matrix_unit: tuple[MatrixType, ...] = ()
    """Operand types of the matrix unit that this process may use; empty without one."""
    has_masked: bool = False
    """True if masked vector loads and stores cost as much as plain ones."""
    has_vector_length: bool = False
    """True if vector instructions take a number of lanes, so that the first lanes of a vector are accessed without a mask."""
    vector_register_bits: int = 0
    """Bits of a RISC-V vector register, if all processors that this target covers have the same; 0 if some have more, so that
    only a run knows how much memory a register takes."""
    costs: Costs = COSTS
    """Constants of the cost models."""

    def __repr__(self) -> str:
        return f"<Target {self.triple}, {self.cpu}>"

    def lanes(self, itemsize: int) -> int:
        """Return the number of elements of `itemsize` bytes in a vector."""
        return max(1, self.vector_bytes // itemsize) if itemsize <= self.widest_element else 1

    @property
    def dot4(self) -> str:
        """Operation of the loop IR by which the machine sums products of bytes; other operations express it on a machine
        without it."""
        return "dot4_signed" if self.dot_product == "s8s8" else "dot4"

    @property
    def products_in_a_lane(self) -> int:
        """Number of products of bytes that vectors sum in a lane at a time."""
        return 4 if self.dot_product else 2 if self.multiplies_int16_pairs else 1

    @property
    def packs(self) -> bool:
        """True if the machine narrows vectors to bytes, two at once."""
        return 0 < self.packed_vector_bytes <= self.vector_bytes

    @property
    def architecture(self) -> str:
        """The family of instruction sets: x86, aarch64, arm, riscv, or the first part of the triple (xtensa, avr)."""
        return architecture_of(self.triple)

    @property
    def float_unit(self) -> tuple[str, ...]:
        """Float types that the machine computes in instructions."""
        return float_unit(self.instruction_set, self.enabled)

    @property
    def instruction_set(self) -> str:
        """The family of instruction sets, where Thumb is a family of its own."""
        return "thumb" if self.triple.startswith("thumb") else self.architecture

    @property
    def fused_floats(self) -> tuple[str, ...]:
        """Float types with a fused multiply-add, rounded once."""
        return fused_floats(self.architecture, self.enabled)

    @property
    def rounds_floats(self) -> bool:
        """True if rint, floor and ceil are instructions."""
        return self.architecture == "aarch64" or (self.architecture == "x86" and "sse4.1" in self.enabled)

    @property
    def lacking_integers(self) -> frozenset[str]:
        """Integer operations without an instruction, in LLVM's spelling."""
        return lacking_integers(self.instruction_set, self.enabled)

    @property
    def looks_up_bytes(self) -> bool:
        """True if bytes are looked up in a table of four vectors (VPERMI2B)."""
        return "avx512vbmi" in self.enabled and self.vector_bytes >= 64

    @property
    def has_slow_integer_products(self) -> bool:
        """True if integer products take as long as `costs` says; else as long as those of floats."""
        return self.architecture == "x86"

    @property
    def multiplies_even_words(self) -> bool:
        """True if 64-bit products take the even lanes of vectors of int32 (PMULDQ)."""
        return self.architecture == "x86"

    @property
    def multiplies_int16_pairs(self) -> bool:
        """True if vectors sum products of 16 bits two to a lane of int32 (PMADDWD)."""
        return self.architecture == "x86" and "sse2" in self.enabled and self.vector_bytes >= 16

    @property
    def streams(self) -> bool:
        """True if vectors can be stored past the caches."""
        return self.architecture == "x86"

    @property
    def has_vector_width(self) -> bool:
        """True if LLVM takes the width of vectors as an attribute, and splits wider masked accesses so that it reads masked
        lanes."""
        return self.architecture == "x86"

    @property
    def section_mark(self) -> str:
        """Character before the type of a section or symbol in the assembly language."""
        return "%" if self.architecture == "arm" else "@"

    @property
    def has_build_attributes(self) -> bool:
        """True if a linker compares the build attributes of objects."""
        return self.architecture == "arm"

    @property
    def pointer_bytes(self) -> int | None:
        """Bytes of a pointer; None if the C compiler decides."""
        return None if self.architecture in ("c99", "avr") else 8 if self.has_int64 else 4

    @property
    def micro_kernels(self) -> tuple[str, ...]:
        """Micro-kernels of contractions for which the machine has instructions, the preferred ones first: names of
        `schedule.contraction.contraction_strategies`."""
        has = {"limbs": "bfloat16" in self.matrix_unit, "tiles": "int8" in self.matrix_unit, "dot8": self.has_byte_pairs,
               "dot4": self.dot_product is not None, "dot2": self.multiplies_int16_pairs,
               "dual": self.has_dual_multiply and self.vector_bytes == 1, "dot": self.sums_bytes,
               "widen": self.has_widening_products, "vectors": True}
        return tuple(name for name, there in has.items() if there)

    @property
    def has_float16(self) -> bool:
        """True if float16 <-> float32 is an instruction."""
        if self.triple.startswith("thumb"):
            return "float32" in self.float_unit  # every float unit of Cortex-M converts it
        return "f16c" in self.enabled or self.architecture == "aarch64"

    @property
    def computes_float16(self) -> bool:
        """True if vectors of float16 are added, multiplied, divided and compared, each rounded once."""
        vectors = {"aarch64": "neon", "arm": "mve.fp"}.get(self.architecture)
        return vectors in self.enabled and "fullfp16" in self.enabled

    @property
    def keeps_float16(self) -> bool:
        """True if constants are stored as float16 where possible: without a cache, their flash size counts."""
        return self.has_float16 and not self.has_cache

    @property
    def keeps_int4(self) -> bool:
        """True if packed four-bit weights are stored in four bits, and read one by one: for the same reason."""
        return not self.has_cache

    @property
    def has_dual_multiply(self) -> bool:
        """True if two products of 16 bits are added to a sum in one instruction (SMLAD)."""
        return self.architecture == "arm" and "dsp" in self.enabled

    @property
    def integer_registers(self) -> int:
        """Number of registers for sums of integers and their factors if there are no vectors, besides pointers. Measured: of
        Thumb's fourteen 12; of the eight that it has without Thumb-2, 4; of RISC-V's 31 as many as of RV32, 24."""
        if not self.triple.startswith("thumb"):
            return min(self.vector_registers, SCALAR_REGISTERS)
        return 12 if "thumb2" in self.enabled else 4

    @property
    def keeps_pairs(self) -> bool:
        """True if weights of bytes can be stored as pairs of 16 bits, for SMLAD."""
        return self.has_dual_multiply and self.vector_bytes == 1

    @property
    def has_gather(self) -> bool:
        """True if lanes are loaded from anywhere by vectors of indices, which have 64 bits."""
        return self.has_masked and self.widest_element == 8

    @property
    def of_scalar_floats(self) -> Target:
        """The same machine without its vectors."""
        return replace(self, vector_bytes=1, vector_registers=SCALAR_REGISTERS, has_masked=False, rounds_words=False,
                       costs=COSTS)

    @property
    def sums_bytes(self) -> bool:
        """True if the products of all bytes of two vectors are added to a scalar in one instruction (VMLADAVA)."""
        return self.vector_bytes > 1 and self.architecture == "arm" and "mve.fp" in self.enabled

    @property
    def has_object_code(self) -> bool:
        """True if code for the machine can be compiled to an object; else only to C source."""
        return self.architecture not in C_ONLY

    @property
    def is_elf(self) -> bool:
        """True if the machine's objects are ELF, whose sections may have any name."""
        return not any(system in self.triple for system in ("darwin", "apple", "macos", "windows", "wasm"))

    @property
    def has_int64(self) -> bool:
        """True if registers have 64 bits."""
        return "64" in self.triple.split("-")[0]

    @property
    def enabled(self) -> frozenset[str]:
        """Enabled features, by LLVM's names."""
        return enabled(self.features)
