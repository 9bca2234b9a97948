#pragma once

#include <vector>

#include "kernels/words/WordGroups.h"
#include "kernels/words/gpu/DeviceMemory.h"
#include "kernels/words/gpu/WordParams.h"

namespace faiss_bits::words {

/// Groups on the device.
struct DeviceGroups {
    DeviceMemory<uint32_t> letters, lengths, places;
    DeviceMemory<uint64_t> begins;
    uint32_t count = 0;
    bool isThere = false;

    void copy(const WordGroups& groups) {
        count = groups.count();
        std::vector<uint64_t> starts;
        for (uint32_t group = 0; group < count; ++group) {
            starts.push_back(
                    uint64_t(groups.columns(group) - groups.columns(0)));
        }
        begins.copy(starts);
        if (count > 0) {
            const size_t slots = size_t(count) * WordGroups::kSize;
            letters.copy(
                    groups.columns(0),
                    size_t(groups.columns(count - 1) - groups.columns(0)) +
                            size_t(groups.longest(count - 1)) *
                                    WordGroups::kSize);
            lengths.copy(groups.lengths(0), slots);
            places.copy(groups.places(0), slots);
        }
        isThere = true;
    }

    GroupParams params() const {
        return {letters.data(),
                begins.data(),
                lengths.data(),
                places.data(),
                count};
    }
};

} // namespace faiss_bits::words
