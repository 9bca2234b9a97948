#pragma once

#include "kernels/canonical/RoundedOps.h"
#include "kernels/ivf/IvfLists.h"

/// The codes that lists are made of, whatever they mean.
namespace faiss_bits {

/// Codes of a vector.
constexpr int numCodesOf(const IvfLists& lists) {
    return lists.coding == ListCoding::Product ? lists.decoding.numParts
                                               : lists.d;
}

/// Bits of a code.
constexpr int bitsOfCodes(const IvfLists& lists) {
    switch (lists.coding) {
        case ListCoding::Float32:
            return 32;
        case ListCoding::Float16:
            return 16;
        case ListCoding::Scalar8:
            return 8;
        case ListCoding::Scalar6:
            return 6;
        case ListCoding::Scalar4:
            return 4;
        case ListCoding::Product:
            return lists.decoding.partBits;
    }
    return 0;
}

/// Whether neighbouring components of product codes are looked up in blocks of
/// `blockDims`, 2 or 4 (ProductBlocks.cuh).
BITS_HOST_DEVICE constexpr bool areInBlocksOf(
        int blockDims,
        int partBits,
        int d,
        int partDims) {
    return partBits == 8 && d % 4 == 0 &&
            (blockDims == 4 ? partDims % 4 == 0 : partDims == blockDims);
}

/// Whether vectors of a list share bytes. FAISS's GPU ors new codes into these,
/// so that bits behind the last vector of a list have to be zero.
constexpr bool vectorsShareBytes(const IvfLists& lists) {
    return lists.layout == ListLayout::Interleaved &&
            bitsOfCodes(lists) % 8 != 0;
}

} // namespace faiss_bits
