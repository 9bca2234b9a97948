#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/dropin/HostResults.h"
#include "kernels/common/Error.h"
#include "tests/flat/FakeCuda.h"

/// Results on their way to the host, with a CUDA runtime whose work is done as
/// late as CUDA allows: what is copied too early is not what the search wrote.

using namespace faiss_bits::test::fake;

// ---- what the library needs of a device -------------------------------------

namespace {

std::atomic<int> pinnedPieces{0};
bool memoryLacks = false;

} // namespace

extern "C" {

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
    *memory = std::calloc(bytes, 1);
    markPinned(*memory, bytes);
    ++pinnedPieces;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    *stream = makeStream();
    return cudaSuccess;
}

} // extern "C"

namespace faiss_bits::dropin {

RelaxedCapture::RelaxedCapture() = default;
RelaxedCapture::~RelaxedCapture() = default;

Scratch::Scratch(cudaMemPool_t, size_t bytes, cudaStream_t stream)
        : stream_(stream) {
    if (memoryLacks) {
        throw Error("no memory");
    }
    data_ = std::calloc(bytes, 1);
    markDevice(data_, bytes);
}

/// In the order of the stream.
Scratch::~Scratch() {
    enqueue(stream_, [memory = data_] { std::free(memory); });
}

} // namespace faiss_bits::dropin

namespace faiss_bits::test {
namespace {

using dropin::Device;
using dropin::HostResults;

constexpr float kBefore = -1;

/// A search whose results are these numbers, into arrays with something before
/// and behind them.
class FakeSearch {
   public:
    explicit FakeSearch(size_t count, int seed = 0)
            : count_(count),
              seed_(seed),
              distances_(count + 2, kBefore),
              ids_(count + 2, idx_t(kBefore)),
              stream_(makeStream()) {}

    std::unique_ptr<HostResults> begin() {
        return std::make_unique<HostResults>(
                Device{},
                count_,
                distances_.data() + 1,
                ids_.data() + 1,
                stream_);
    }

    void enqueueTo(const HostResults& results) const {
        enqueue(stream_,
                [count = count_,
                 seed = seed_,
                 distances = results.distances(),
                 ids = results.ids()] {
                    for (size_t i = 0; i < count; ++i) {
                        distances[i] = distanceOf(i, seed);
                        ids[i] = idOf(i, seed);
                    }
                });
    }

    void expectResults() const {
        for (size_t i = 0; i < count_; ++i) {
            ASSERT_EQ(distances_[i + 1], distanceOf(i, seed_)) << i;
            ASSERT_EQ(ids_[i + 1], idOf(i, seed_)) << i;
        }
        EXPECT_EQ(distances_.front(), kBefore);
        EXPECT_EQ(distances_.back(), kBefore);
        EXPECT_EQ(ids_.front(), idx_t(kBefore));
        EXPECT_EQ(ids_.back(), idx_t(kBefore));
    }

    void expectNothing() const {
        EXPECT_EQ(distances_, std::vector<float>(count_ + 2, kBefore));
        EXPECT_EQ(ids_, std::vector<idx_t>(count_ + 2, idx_t(kBefore)));
    }

   private:
    static float distanceOf(size_t i, int seed) {
        return float(i % 100003) + float(seed);
    }
    static idx_t idOf(size_t i, int seed) {
        return idx_t(i) * 3 + (idx_t(seed + 1) << 40);
    }

    size_t count_;
    int seed_;
    std::vector<float> distances_;
    std::vector<idx_t> ids_;
    cudaStream_t stream_;
};

/// Both sides of 192 KiB in all, of what one helper and two have, of four
/// chunks, and of 4 MiB, from where on pieces of 256 KiB go by themselves.
constexpr size_t kCounts[] = {1,      7,      16384,  16385,  32767,  32768,
                              32769,  43690,  43691,  65535,  65536,  65537,
                              87381,  87382,  131072, 131073, 174762, 174763,
                              349525, 349526, 700001};

void searchAll(Schedule schedule) {
    setSchedule(schedule);
    for (size_t count : kCounts) {
        SCOPED_TRACE(testing::Message() << "count=" << count);
        FakeSearch search(count, int(count % 11));
        const auto results = search.begin();
        search.enqueueTo(*results);
        results->goHome();
        search.expectResults();
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST(HostResults, WorkIsWaitedFor) {
    for (Schedule schedule :
         {Schedule::Lazy, Schedule::Eager, Schedule::Random}) {
        SCOPED_TRACE(int(schedule));
        searchAll(schedule);
    }
    finishAll();
}

// The search has thrown: nothing comes home, and all threads end.
TEST(HostResults, NothingComesWithoutIt) {
    setSchedule(Schedule::Random);
    for (size_t count : kCounts) {
        SCOPED_TRACE(testing::Message() << "count=" << count);
        FakeSearch search(count);
        {
            const auto results = search.begin();
            search.enqueueTo(*results);
        }
        finishAll();
        search.expectNothing();
    }
}

// The host gets ready while the search runs, for results of its own alone.
TEST(HostResults, SearchesTellThatTheyRun) {
    setSchedule(Schedule::Lazy);
    for (size_t count : {size_t(7), size_t(131073), size_t(700001)}) {
        SCOPED_TRACE(testing::Message() << "count=" << count);
        FakeSearch outer(count, 1);
        FakeSearch inner(count, 2);
        const auto results = outer.begin();
        {
            const auto within = inner.begin();
            inner.enqueueTo(*within);
            HostResults::isUnderWay(results->distances()); // not the inner one
            HostResults::isUnderWay(within->distances());
            HostResults::isUnderWay(nullptr);
            within->goHome();
            inner.expectResults();
        }
        outer.enqueueTo(*results);
        HostResults::isUnderWay(results->distances());
        HostResults::isUnderWay(results->distances());
        results->goHome();
        outer.expectResults();
    }
    finishAll();
}

TEST(HostResults, MemoryThatLacksIsAnError) {
    memoryLacks = true;
    for (size_t count : {size_t(1), size_t(131073), size_t(700001)}) {
        FakeSearch search(count);
        EXPECT_THROW(search.begin(), Error);
        search.expectNothing();
    }
    memoryLacks = false;
}

// As many pieces as threads have had at once, which depends on their timing: of
// 60 calls no more than 8, and one where results land.
TEST(HostResults, WhatWasPinnedServesLaterCalls) {
    const int before = pinnedPieces;
    for (int i = 0; i < 3; ++i) {
        searchAll(Schedule::Random);
    }
    EXPECT_GE(pinnedPieces, 1);
    EXPECT_LE(pinnedPieces - before, 8 + 1);
    finishAll();
}

TEST(HostResults, SeveralCallsAtOnce) {
    setSchedule(Schedule::Random);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (int i = 0; i < 6; ++i) {
                FakeSearch search(kCounts[size_t(t + 3 * i) % 20], t);
                const auto results = search.begin();
                search.enqueueTo(*results);
                results->goHome();
                search.expectResults();
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    finishAll();
}

} // namespace
} // namespace faiss_bits::test
