/// The functions that this library defines, for the code that defines them.
#pragma once

#include <string>

#include "faiss_bits/dropin/FaissFunctions.h"
#include "faiss_bits/dropin/LoadedFaiss.h"
#include "kernels/common/Types.h"

namespace faiss_bits::dropin {

/// `address` tells the overload.
template <class Index, class F>
Function describe(const char* name, F* address, bool isSearch = false) {
    return {name,
            sizeof(Index) == 4 ? "float keys, 32-bit ids"
                               : "float keys, 64-bit ids",
            int(8 * sizeof(Index)),
            reinterpret_cast<const void*>(address),
            isSearch,
            false};
}

/// Of inverted lists, whose ids have 64 bits in every version.
template <class Index, class F>
Function describeListScan(const char* name, F* address) {
    return {name,
            sizeof(Index) == 4 ? "lists, 32-bit lengths"
                               : "lists, 64-bit lengths",
            int(8 * sizeof(Index)),
            reinterpret_cast<const void*>(address),
            true,
            true};
}

template <class Index>
Function describeBlockSelect() {
    faiss::gpu::SelectFunction<Index>* address = &faiss::gpu::runBlockSelect;
    return describe<Index>("runBlockSelect", address);
}

template <class Index>
Function describeBlockSelectPair() {
    faiss::gpu::SelectPairFunction<Index>* address =
            &faiss::gpu::runBlockSelectPair;
    return describe<Index>("runBlockSelectPair", address);
}

template <class Index>
Function describeL2SelectMin() {
    faiss::gpu::L2SelectFunction<Index>* address = &faiss::gpu::runL2SelectMin;
    return describe<Index>("runL2SelectMin", address);
}

template <class Index>
Function describeL2Distance() {
    faiss::gpu::L2DistanceFunction<Index>* address = &faiss::gpu::runL2Distance;
    return describe<Index>("runL2Distance", address, true);
}

template <class Index>
Function describeIPDistance() {
    faiss::gpu::IPDistanceFunction<Index>* address = &faiss::gpu::runIPDistance;
    return describe<Index>("runIPDistance", address, true);
}

template <class Index>
Function describeInterleavedScan() {
    faiss::gpu::InterleavedScanFunction<Index>* address =
            &faiss::gpu::runIVFInterleavedScan;
    return describeListScan<Index>("runIVFInterleavedScan", address);
}

template <class Index>
Function describeFlatScan() {
    faiss::gpu::FlatScanFunction<Index>* address = &faiss::gpu::runIVFFlatScan;
    return describeListScan<Index>("runIVFFlatScan", address);
}

inline std::string shapeText(idx_t rows, idx_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

} // namespace faiss_bits::dropin
