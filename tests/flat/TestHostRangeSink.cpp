/// Results of range searches on their way to the host, on streams without a
/// GPU: whatever waits on the device, in whatever order that works, all come to
/// their places.

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/range/RangeResults.h"
#include "tests/flat/FakeResources.h"

namespace faiss_bits::test {
namespace {

using namespace gpu::detail;
using fake::Schedule;

/// What a kernel writes for result i of the whole search.
idx_t idOf(size_t i) {
    return idx_t(i * 7 % 1000003);
}
float distanceOf(size_t i) {
    return float(i % 65537);
}

/// A part: results of some queries from a query on.
struct Some {
    idx_t first;
    std::vector<idx_t> counts;
};

/// Hands the parts to a sink as a search does, and compares what comes out.
void expectAll(
        idx_t n,
        const std::vector<Some>& parts,
        size_t pinned,
        Schedule schedule,
        bool mayHold,
        bool asPieces) {
    fake::reset(schedule, 5);
    FakeResources resources(pinned);
    GpuContext context;
    context.resources = &resources;
    context.stream = resources.getDefaultStream(0);
    context.memoryStream = context.stream;
    std::vector<size_t> counts(static_cast<size_t>(n));
    size_t total = 0;
    std::unique_ptr<faiss::RangeSearchResult> result;
    if (asPieces) {
        result = std::make_unique<RangePieces>(n);
    } else {
        result = std::make_unique<faiss::RangeSearchResult>(n);
    }
    {
        RangeResults results(n);
        HostRangeSink sink(context, results, mayHold);
        for (const Some& some : parts) {
            // As a search of pages of ten queries.
            sink.setFirst(some.first / 10 * 10);
            RangePart part;
            part.first = some.first % 10;
            part.counts = some.counts;
            for (size_t i = 0; i < some.counts.size(); ++i) {
                part.total += some.counts[i];
                counts[size_t(some.first) + i] += size_t(some.counts[i]);
            }
            RangeRoom room;
            if (part.total > 0) {
                room = sink.room(part);
                const size_t begin = total;
                const size_t size = size_t(part.total);
                fake::enqueue(context.stream, [=] {
                    for (size_t i = 0; i < size; ++i) {
                        room.ids[i] = idOf(begin + i);
                        room.distances[i] = distanceOf(begin + i);
                    }
                });
                total += size;
            }
            sink.take(part, room);
        }
        results.moveTo(*result);
    }
    size_t at = 0;
    for (idx_t q = 0; q < n; ++q) {
        ASSERT_EQ(result->lims[q], at) << q;
        at += counts[size_t(q)];
    }
    ASSERT_EQ(result->lims[n], total);
    auto* const pieces = dynamic_cast<RangePieces*>(result.get());
    if (pieces) {
        pieces->fetch();
    }
    for (size_t begin = 0; begin < total;) {
        RangeRun run{result->distances, result->labels, total};
        if (pieces) {
            run = pieces->run(begin, total);
        }
        ASSERT_GT(run.size, 0u);
        size_t wrong = 0;
        for (size_t i = 0; i < run.size; ++i) {
            wrong += run.ids[i] != idOf(begin + i);
            wrong += run.distances[i] != distanceOf(begin + i);
        }
        ASSERT_EQ(wrong, 0u) << begin << " " << run.size;
        begin += run.size;
    }
}

void expectAllWays(idx_t n, const std::vector<Some>& parts) {
    constexpr size_t kMiB = size_t(1) << 20;
    for (const size_t pinned : {7 * kMiB, 2 * kMiB, size_t(0)}) {
        for (const auto schedule :
             {Schedule::Lazy, Schedule::Eager, Schedule::Random}) {
            for (const bool mayHold : {true, false}) {
                for (const bool asPieces : {false, true}) {
                    SCOPED_TRACE(
                            ::testing::Message()
                            << pinned << " " << int(schedule) << " " << mayHold
                            << " " << asPieces);
                    expectAll(n, parts, pinned, schedule, mayHold, asPieces);
                }
            }
        }
    }
}

constexpr idx_t kLarge = (idx_t(4) << 20) / 12; // the last that is not

TEST(HostRangeSink, OnePart) {
    for (const idx_t size : {idx_t(1), kLarge, kLarge + 1, 2 * kLarge + 5}) {
        expectAllWays(2, {{0, {size - 1, 1}}});
    }
}

TEST(HostRangeSink, NothingAtAll) {
    expectAllWays(3, {{0, {0, 0}}, {2, {0}}});
}

/// The first part lets expect as many, more or fewer than come.
TEST(HostRangeSink, PartsOfOtherSizesThanExpected) {
    const auto parts = [](std::vector<idx_t> sizes) {
        std::vector<Some> all;
        for (size_t i = 0; i < sizes.size(); ++i) {
            all.push_back({idx_t(10 * i), std::vector<idx_t>(10)});
            for (idx_t& count : all.back().counts) {
                count = sizes[i] / 10;
            }
            all.back().counts[3] += sizes[i] % 10;
        }
        return all;
    };
    expectAllWays(50, parts({100001, 100003, 100002, 99999, 100007}));
    expectAllWays(50, parts({100001, 7, 0, 300001, 150003}));
    expectAllWays(50, parts({3, 200001, 0, 500001, 11}));
    expectAllWays(50, parts({0, 0, kLarge + 1, 1, 0}));
}

/// Parts that end within a query, whose others follow.
TEST(HostRangeSink, AQueryInSeveralParts) {
    expectAllWays(
            12,
            {{0, {5, 200000}},
             {1, {200001}},
             {1, {199999, 0, 3}},
             {4, {0, 1, 2, 3, 4, 5}},
             {10, {70000, 70001}}});
}

} // namespace
} // namespace faiss_bits::test
