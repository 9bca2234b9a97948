#pragma once

namespace faiss_bits {

/// True if a derived class may put members into the last bytes of Base.
///
/// Where a struct has two bases, nvcc 13.0 puts the second into such bytes of
/// the first in device code, and the host compiler does not: kernels then read
/// other bytes than the host has written. So the parts that the kernels'
/// parameters inherit from have none.
template <class Base>
constexpr bool hasTailPadding() {
    struct Derived : Base {
        char next = 0;
    };
    return sizeof(Derived) == sizeof(Base);
}

} // namespace faiss_bits
