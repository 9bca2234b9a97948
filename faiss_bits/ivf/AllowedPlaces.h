#pragma once

#include <memory>
#include <vector>

#include <faiss/impl/IDSelector.h>
#include <faiss/invlists/InvertedLists.h>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/cpu/ivf/IvfKnn.h"

/// What a selector leaves of inverted lists. Not part of the API.
namespace faiss_bits::detail {

/// Places in each list of the vectors that a selector selects.
struct AllowedPlaces {
    std::vector<cpu::IvfPlaces> ofList; ///< [nlist]
    std::unique_ptr<idx_t[]> places;    ///< that they point into
};

/// Of the lists in assign [n] alone, numbers below 0 aside. Asks is_member on
/// the calling thread, once for each vector; not for ranges and arrays of ids.
AllowedPlaces allowedPlaces(
        const faiss::IDSelector& selector,
        const faiss::InvertedLists& lists,
        idx_t n,
        const idx_t* assign);

} // namespace faiss_bits::detail
