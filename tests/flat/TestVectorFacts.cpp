/// What an index keeps for its searches, by searches on several resources and
/// from several threads, on streams without a GPU: made once, and complete
/// before any stream reads it. The kernels that make it are the test's own.

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/flat/VectorFacts.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "tests/flat/FakeResources.h"

namespace faiss_bits {

namespace {

constexpr float kMade = 42;
std::atomic<int> imagesMade = 0;
std::atomic<int> factsMade = 0;

} // namespace

void runSearchImage(
        const FlatKnnProblem&,
        const SearchImage& image,
        cudaStream_t stream) {
    ++imagesMade;
    test::fake::enqueue(stream, [image] { *image.center = kMade; });
}

void runRowMaxima(
        const void*,
        DataType,
        bool,
        idx_t,
        int,
        RowMaxima* out,
        cudaStream_t stream) {
    test::fake::enqueue(stream, [out] { out->sum = kMade; });
}

void runRowFacts(
        RowFacts,
        const void*,
        DataType,
        bool,
        idx_t,
        int,
        float* facts,
        cudaStream_t stream) {
    ++factsMade;
    test::fake::enqueue(stream, [facts] { *facts = kMade; });
}

namespace test {
namespace {

using namespace gpu::detail;
using fake::Schedule;

FlatKnnProblem problemOf(Metric metric = Metric::L2, idx_t queries = 1000) {
    FlatKnnProblem p;
    p.metric = metric;
    p.numVectors = 1 << 18;
    p.numQueries = p.batchQueries = queries;
    p.d = 64;
    p.k = 10;
    return p;
}

/// Resources of one thread, which count what is taken from them.
class OneThread : public FakeResources {
   public:
    OneThread() : FakeResources(0) {}

    GpuContext context() {
        const cudaStream_t stream = getDefaultStream(0);
        return {this, 0, stream, stream};
    }
    void* allocMemory(const faiss::gpu::AllocRequest& request) override {
        ++taken;
        return FakeResources::allocMemory(request);
    }
    void deallocMemory(int device, void* data) override {
        ++given;
        FakeResources::deallocMemory(device, data);
    }

    int taken = 0, given = 0;
};

class SharedFacts : public ::testing::TestWithParam<Schedule> {
   protected:
    void SetUp() override {
        fake::reset(GetParam(), 5);
        imagesMade = factsMade = misread = reads = 0;
        for (int i = 0; i < 3; ++i) {
            all.push_back(std::make_unique<OneThread>());
        }
        facts.emplace(true, all[0].get());
    }
    void TearDown() override {
        fake::finishAll();
        facts.reset();
        EXPECT_EQ(all[0]->taken, all[0]->given);
    }

    /// A search: its kernels read what it is given.
    ImageUse search(OneThread& thread, const FlatKnnProblem& problem) {
        FlatKnnProblem p = problem;
        const GpuContext context = thread.context();
        FlatKnnProblem expected = problem;
        const ImageUse planned =
                facts->expectFor(expected, facts->isOwn(context));
        const ImageUse use = facts->giveTo(p, context);
        if (!isThreaded) {
            EXPECT_EQ(planned, use);
            EXPECT_EQ(bool(expected.searchImage), bool(p.searchImage));
            EXPECT_EQ(bool(expected.vectorFacts), bool(p.vectorFacts));
        }
        if (p.searchImage) {
            WorkspaceSlices slices(Workspace{
                    const_cast<void*>(p.searchImage), searchImageBytes(p)});
            read(context.stream, SearchImage(p, slices).center);
        }
        if (p.vectorFacts) {
            read(context.stream, p.vectorFacts);
            read(context.stream, &p.rowMaxima->sum);
        }
        return use;
    }
    void read(cudaStream_t stream, const float* made) {
        ++reads;
        fake::enqueue(stream, [this, made] { misread += *made != kMade; });
    }
    void expectReads(int count) {
        fake::finishAll();
        EXPECT_EQ(reads, count);
        EXPECT_EQ(misread, 0);
    }

    bool isThreaded = false;
    std::atomic<int> reads = 0, misread = 0;
    std::vector<std::unique_ptr<OneThread>> all; // the first is the index's
    std::optional<VectorFacts> facts;
};

TEST_P(SharedFacts, MadeOnceByWhoeverIsFirst) {
    for (int first = 0; first < 3; ++first) {
        for (const Metric metric : {Metric::L2, Metric::Canberra}) {
            facts->forget();
            imagesMade = factsMade = reads = 0;
            const FlatKnnProblem p = problemOf(metric);
            for (int i = 0; i < 12; ++i) {
                search(*all[(first + i) % 3], p);
            }
            const bool hasImage = metric == Metric::L2;
            EXPECT_EQ(imagesMade, hasImage);
            EXPECT_EQ(factsMade, !hasImage);
            // The last one's stream is waited for first.
            EXPECT_EQ(
                    cudaStreamSynchronize(all[2]->getDefaultStream(0)),
                    cudaSuccess);
            expectReads(hasImage ? 12 : 24);
        }
    }
    EXPECT_EQ(all[1]->taken + all[2]->taken, 0);
    EXPECT_EQ(all[0]->taken, 2);
}

/// Resources that have made something may go.
TEST_P(SharedFacts, OutlivesTheResourcesThatMadeIt) {
    EXPECT_EQ(search(*all[1], problemOf()), ImageUse::Make);
    fake::finishAll();
    all.pop_back();
    all[1] = std::make_unique<OneThread>();
    EXPECT_EQ(search(*all[0], problemOf()), ImageUse::Kept);
    EXPECT_EQ(search(*all[1], problemOf()), ImageUse::Kept);
    expectReads(3);
    EXPECT_EQ(imagesMade, 1);
}

TEST_P(SharedFacts, FewQueriesAreCountedTogether) {
    const FlatKnnProblem few = problemOf(Metric::L2, 10);
    std::vector<ImageUse> uses;
    for (int i = 0; i < 7; ++i) {
        uses.push_back(search(*all[i % 3], few));
    }
    using enum ImageUse;
    EXPECT_EQ(
            uses,
            (std::vector{NotYet, NotYet, NotYet, NotYet, Make, Kept, Kept}));
    expectReads(3);
}

/// What may be released on the index's resources alone stays there for them.
TEST_P(SharedFacts, AnotherMetric) {
    EXPECT_EQ(search(*all[0], problemOf()), ImageUse::Make);
    const FlatKnnProblem p = problemOf(Metric::InnerProduct);
    EXPECT_EQ(search(*all[1], p), ImageUse::None);
    EXPECT_EQ(search(*all[1], problemOf(Metric::Canberra)), ImageUse::None);
    EXPECT_EQ(factsMade, 0);
    EXPECT_EQ(all[0]->given, 0);
    EXPECT_EQ(search(*all[0], p), ImageUse::Make);
    EXPECT_EQ(all[0]->given, 1);
    EXPECT_EQ(search(*all[1], p), ImageUse::Kept);
    fake::finishAll(); // before the index changes, which is its metric
    search(*all[0], problemOf(Metric::Canberra));
    search(*all[1], problemOf(Metric::Canberra));
    EXPECT_EQ(all[0]->given, 2); // the image, when the facts came
    EXPECT_EQ(search(*all[1], p), ImageUse::Make);
    EXPECT_EQ(factsMade, 1);
    expectReads(3 + 4 + 1);
}

/// A range search gets an image in the vectors' order beside the other one,
/// which threads may be reading; k-NN searches make none where one is there.
TEST_P(SharedFacts, AnotherOrder) {
    const FlatKnnProblem knn = problemOf();
    FlatKnnProblem range = knn;
    range.imageInOrder = true;
    const auto give = [&](OneThread& thread, FlatKnnProblem p) {
        facts->giveTo(p, thread.context());
        EXPECT_TRUE(p.searchImage);
        return p;
    };
    EXPECT_EQ(search(*all[0], knn), ImageUse::Make);
    const void* spread = give(*all[0], knn).searchImage;
    EXPECT_FALSE(give(*all[0], knn).imageInOrder);
    EXPECT_EQ(search(*all[1], range), ImageUse::Make);
    EXPECT_EQ(all[0]->given, 0);
    EXPECT_EQ(imagesMade, 2);
    EXPECT_EQ(search(*all[0], range), ImageUse::Kept);
    EXPECT_TRUE(give(*all[2], range).imageInOrder);
    EXPECT_NE(give(*all[2], range).searchImage, spread);
    EXPECT_EQ(give(*all[2], knn).searchImage, spread);
    EXPECT_FALSE(give(*all[2], knn).imageInOrder);
    fake::finishAll();
    facts->forget();
    // The other way round there is one.
    EXPECT_EQ(search(*all[0], range), ImageUse::Make);
    EXPECT_EQ(search(*all[1], knn), ImageUse::Kept);
    EXPECT_TRUE(give(*all[1], knn).imageInOrder);
    EXPECT_EQ(imagesMade, 3);
    expectReads(5);
}

TEST_P(SharedFacts, Threads) {
    isThreaded = true;
    constexpr int kThreads = 8;
    while (all.size() < kThreads) {
        all.push_back(std::make_unique<OneThread>());
    }
    for (const Metric metric : {Metric::L2, Metric::Jaccard}) {
        facts->forget();
        imagesMade = factsMade = reads = 0;
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([this, t, metric] {
                for (int i = 0; i < 20; ++i) {
                    search(*all[t], problemOf(metric));
                }
                cudaStreamSynchronize(all[t]->getDefaultStream(0));
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        EXPECT_EQ(imagesMade + factsMade, 1);
        expectReads(20 * kThreads * (metric == Metric::L2 ? 1 : 2));
    }
    for (int t = 1; t < kThreads; ++t) {
        EXPECT_EQ(all[t]->taken, 0);
    }
}

/// Vectors that one stream has still to write are read by others after that.
TEST_P(SharedFacts, ChangesComeFirst) {
    const cudaStream_t own = all[0]->getDefaultStream(0);
    float vector = 0;
    for (int round = 0; round < 50; ++round) {
        vector = 0;
        {
            const ScopedMark mark(facts->changes(), own);
            fake::enqueue(own, [&] { vector = kMade; });
        }
        for (const auto& thread : all) {
            for (int i = 0; i < 2; ++i) {
                facts->awaitChanges(thread->context(), true);
                read(thread->getDefaultStream(0), &vector);
            }
        }
        expectReads(6 * (round + 1));
    }
    // Unknown ones are waited for, whatever stream they are on.
    vector = 0;
    fake::enqueue(fake::makeStream(), [&] { vector = kMade; });
    facts->awaitChanges(all[1]->context(), false);
    EXPECT_EQ(vector, kMade);
}

/// The fake refuses whatever a capture forbids. Nothing is made in one; what is
/// there is used.
TEST_P(SharedFacts, Captured) {
    const cudaStream_t captured = all[1]->getDefaultStream(0);
    facts->changes().set(all[0]->getDefaultStream(0));
    fake::capture(captured);
    FlatKnnProblem p = problemOf();
    facts->awaitChanges(all[1]->context(), true);
    facts->awaitChanges(all[1]->context(), false);
    EXPECT_EQ(facts->giveTo(p, all[1]->context()), ImageUse::None);
    EXPECT_FALSE(p.searchImage);
    EXPECT_EQ(search(*all[0], problemOf()), ImageUse::Make);
    EXPECT_EQ(facts->giveTo(p, all[1]->context()), ImageUse::Kept);
    EXPECT_TRUE(p.searchImage);
    expectReads(1);
}

TEST_P(SharedFacts, MarkIsSetWhereSomethingThrows) {
    const cudaStream_t own = all[0]->getDefaultStream(0);
    WorkMark mark;
    float written = 0;
    try {
        const ScopedMark scope(mark, own);
        fake::enqueue(own, [&] { written = kMade; });
        throw 1;
    } catch (int) {
    }
    mark.holdUp(all[1]->getDefaultStream(0));
    read(all[1]->getDefaultStream(0), &written);
    expectReads(1);
}

INSTANTIATE_TEST_SUITE_P(
        Schedules,
        SharedFacts,
        ::testing::Values(Schedule::Lazy, Schedule::Eager, Schedule::Random));

} // namespace
} // namespace test
} // namespace faiss_bits
