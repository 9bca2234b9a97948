#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/range/FlatRange.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {

struct RangeFound {
    std::vector<std::vector<float>> distances; // of each query
    std::vector<std::vector<int64_t>> ids;
    size_t parts = 0;
    int64_t total = 0;
};

/// Keeps what comes, in memory with guards of exactly the size of a part.
class KeepingSink : public RangeSink {
   public:
    KeepingSink(int64_t q, bool wantsResults) : wantsResults_(wantsResults) {
        found.distances.resize(q);
        found.ids.resize(q);
    }

    RangeRoom room(const RangePart& part) override {
        EXPECT_GT(part.total, 0);
        if (!wantsResults_) {
            return {};
        }
        distances_.reset(part.total, 0xFF);
        ids_.reset(part.total, 0xFF);
        return {distances_.data(), ids_.data()};
    }

    void take(const RangePart& part, const RangeRoom& room) override {
        ++found.parts;
        found.total += part.total;
        // In the order of the queries; the last one may go on.
        EXPECT_TRUE(part.first == next_ || part.first == next_ - 1)
                << part.first << " after " << next_;
        next_ = part.first + int64_t(part.counts.size());
        int64_t sum = 0;
        for (const int64_t count : part.counts) {
            sum += count;
        }
        EXPECT_EQ(sum, part.total);
        if (!room.distances) {
            EXPECT_TRUE(part.total == 0 || !wantsResults_);
            return;
        }
        const std::vector<float> distances = distances_.download();
        const std::vector<int64_t> ids = ids_.download();
        int64_t at = 0;
        for (size_t i = 0; i < part.counts.size(); ++i) {
            auto& toDistances = found.distances[part.first + i];
            auto& toIds = found.ids[part.first + i];
            toDistances.insert(
                    toDistances.end(),
                    distances.begin() + at,
                    distances.begin() + at + part.counts[i]);
            toIds.insert(
                    toIds.end(),
                    ids.begin() + at,
                    ids.begin() + at + part.counts[i]);
            at += part.counts[i];
        }
    }

    int64_t queriesSeen() const {
        return next_;
    }

    RangeFound found;

   private:
    const bool wantsResults_;
    int64_t next_ = 0;
    DeviceBuffer<float> distances_;
    DeviceBuffer<int64_t> ids_;
};

} // namespace faiss_bits::test
