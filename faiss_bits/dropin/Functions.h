/// The functions that this library defines, for the code that defines them.
#pragma once

#include <cstring>
#include <string>

#include "faiss_bits/dropin/FaissFunctions.h"
#include "faiss_bits/dropin/FaissIndex.h"
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
            Part::Basic};
}

/// Of inverted lists, whose ids have 64 bits in every version.
template <class Index>
Function describeListScan(
        const char* name,
        const void* address,
        Part part = Part::Lists) {
    return {name,
            sizeof(Index) == 4 ? "lists, 32-bit lengths"
                               : "lists, 64-bit lengths",
            int(8 * sizeof(Index)),
            address,
            true,
            part};
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
    return describeListScan<Index>(
            "runIVFInterleavedScan", reinterpret_cast<const void*>(address));
}

template <class Index>
Function describeFlatScan() {
    faiss::gpu::FlatScanFunction<Index>* address = &faiss::gpu::runIVFFlatScan;
    return describeListScan<Index>(
            "runIVFFlatScan", reinterpret_cast<const void*>(address));
}

template <class Index>
Function describeProductScan() {
    faiss::gpu::ProductScanFunction<Index>* address =
            &faiss::gpu::runPQScanMultiPassNoPrecomputed<float>;
    return describeListScan<Index>(
            "runPQScanMultiPassNoPrecomputed",
            reinterpret_cast<const void*>(address),
            Part::ProductLists);
}

/// Of a function that is not virtual, a pointer to a member begins with its
/// address (Itanium C++ ABI, 2.3).
template <class Member>
const void* addressOfMember(Member member) {
    const void* address = nullptr;
    static_assert(sizeof(member) >= sizeof(address));
    std::memcpy(&address, &member, sizeof(address));
    return address;
}

template <class Index>
Function describeProductSearch() {
    using faiss::gpu::Matrix;
    using Member = void (faiss::gpu::IVFPQ::*)(
            Matrix<float, Index>&,
            Matrix<float, Index>&,
            Matrix<int64_t, Index>&,
            int,
            Matrix<float, Index>&,
            Matrix<int64_t, Index>&);
    const Member member = &faiss::gpu::IVFPQ::runPQPrecomputedCodes_;
    return describeListScan<Index>(
            "runPQPrecomputedCodes_",
            addressOfMember(member),
            Part::ProductLists);
}

inline Function describeIndexSearch() {
    return {"GpuIndex::search",
            "results on the host",
            0,
            addressOfMember(&faiss::gpu::GpuIndex::search),
            true,
            Part::Results};
}

inline std::string shapeText(idx_t rows, idx_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

} // namespace faiss_bits::dropin
