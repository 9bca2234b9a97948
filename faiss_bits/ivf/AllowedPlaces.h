#pragma once

#include <vector>

#include <faiss/impl/IDSelector.h>
#include <faiss/invlists/InvertedLists.h>

#include "faiss_bits/common/FaissCompat.h"

/// What a selector leaves of inverted lists. Not part of the API.
namespace faiss_bits::detail {

/// [nlist] Places in each list of the vectors that `selector` selects,
/// ascending; of the lists in assign [n] alone, numbers below 0 aside. Asks
/// is_member on the calling thread, once for each vector; not for arrays of
/// ids.
std::vector<std::vector<idx_t>> allowedPlaces(
        const faiss::IDSelector& selector,
        const faiss::InvertedLists& lists,
        idx_t n,
        const idx_t* assign);

} // namespace faiss_bits::detail
