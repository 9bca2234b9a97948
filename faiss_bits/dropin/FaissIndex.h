/// FAISS's declaration of the base of its GPU indexes, in our words, as in
/// FaissFunctions.h. Its symbols are the same in every version from 1.7.3 on.
#pragma once

#include <cstdint>
#include <memory>

#include "faiss_bits/dropin/FaissFunctions.h"

namespace faiss {

struct SearchParameters;

} // namespace faiss

namespace faiss::gpu {

/// Without its data, which differ between versions.
class __attribute__((visibility("default"))) GpuIndex {
   public:
    /// The k nearest vectors of each of n queries, in arrays of the host or of
    /// a device: x [n, d], distances and labels [n, k]. Virtual in FAISS, whose
    /// tables of virtual functions find it by its symbol.
    void search(
            int64_t n,
            const float* x,
            int64_t k,
            float* distances,
            int64_t* labels,
            const SearchParameters* params) const;

    // Not defined here.
    int getDevice() const;
    std::shared_ptr<GpuResources> getResources();
};

/// GpuIndex::search as a function of the object.
using IndexSearchFunction =
        void(const GpuIndex* index,
             int64_t n,
             const float* x,
             int64_t k,
             float* distances,
             int64_t* labels,
             const SearchParameters* params);

} // namespace faiss::gpu
