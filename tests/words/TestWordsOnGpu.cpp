// What stands between EditDistanceIndex and the GPU: results on the host, in
// parts, and the nearest words by ranges. Needs no FAISS.

#include <gmock/gmock.h>

#include <list>
#include <thread>

#include "faiss_bits/words/WordsOnGpu.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/words/WordReference.h"

namespace faiss_bits::test {
namespace {

using detail::WordsOnGpu;
using words::Method;
using words::WordIndex;
using words::WordOptions;
using words::WordRange;

class WordsOnGpuTest : public GpuTest {};

WordOptions optionsOf(Method method) {
    WordOptions options;
    options.method = method;
    return options;
}

void expectSame(const WordRange& expected, const WordRange& found) {
    EXPECT_TRUE(expected.limits == found.limits);
    EXPECT_TRUE(expected.ids == found.ids);
    EXPECT_TRUE(expected.distances == found.distances);
}

TEST_F(WordsOnGpuTest, EveryMethodGivesTheCpusAnswer) {
    const WordCase one = denseCase(3000, kManyLetters, 21);
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    const WordIndex index(list.view());
    WordsOnGpu gpu(index);
    const auto letters = index.dictionary().encode(queries.view());
    for (const Method method :
         {Method::Auto,
          Method::Trie,
          Method::BruteForce,
          Method::ListOfClusters,
          Method::Sss}) {
        for (const uint32_t most : {0u, 2u, 4u}) {
            expectSame(
                    rangeReference(one.words, one.queries, int32_t(most)),
                    gpu.range(letters, most, optionsOf(method)));
        }
    }
}

/// More queries than a run takes, and more results than one may have.
TEST_F(WordsOnGpuTest, GoesInParts) {
    const WordCase one = denseCase(300, kTwoLetters, 22);
    std::vector<Text> texts;
    WordMaker make(23);
    for (int i = 0; i < 70000; ++i) {
        texts.push_back(make.word(make.below(12), kTwoLetters));
    }
    const PackedWords list(one.words, "words");
    const PackedWords queries(texts, "queries");
    const WordIndex index(list.view());
    WordsOnGpu gpu(index, 100000);
    const auto letters = index.dictionary().encode(queries.view());
    const WordRange expected = index.range(letters, 4, {});
    EXPECT_GT(expected.ids.size(), 1000000u);
    expectSame(expected, gpu.range(letters, 4, {}));
    expectSame(index.range(letters, 0, {}), gpu.range(letters, 0, {}));
}

/// Results in memory from cudaMalloc.
class DeviceResult : public DeviceWordRange {
   public:
    Part allocate(idx_t size) override {
        memory_.emplace_back(size_t(size));
        return {size,
                memory_.back().distances.data(),
                memory_.back().labels.data()};
    }

    WordRange download() const {
        WordRange out;
        out.limits = lims;
        for (const Part& part : parts) {
            append(out.distances, part.distances, part.size);
            append(out.ids, part.labels, part.size);
        }
        return out;
    }

   private:
    template <class T>
    static void append(std::vector<T>& to, const T* from, idx_t size) {
        const size_t before = to.size();
        to.resize(before + size_t(size));
        BITS_CUDA_CHECK(cudaMemcpy(
                to.data() + before,
                from,
                size_t(size) * sizeof(T),
                cudaMemcpyDeviceToHost));
    }

    struct Arrays {
        explicit Arrays(size_t size) : distances(size), labels(size) {}
        DeviceBuffer<int32_t> distances;
        DeviceBuffer<idx_t> labels;
    };
    std::list<Arrays> memory_;
};

TEST_F(WordsOnGpuTest, ResultsOnTheDevice) {
    const WordCase one = denseCase(300, kTwoLetters, 26);
    std::vector<Text> texts = one.queries;
    WordMaker make(27);
    for (int i = 0; i < 3000; ++i) {
        texts.push_back(make.word(make.below(12), kTwoLetters));
    }
    texts.push_back(make.word(70, kTwoLetters));
    const PackedWords list(one.words, "words");
    const PackedWords queries(texts, "queries");
    const WordIndex index(list.view());
    const auto letters = index.dictionary().encode(queries.view());
    for (const auto& [mostResults, parts] :
         std::vector<std::pair<idx_t, size_t>>{{1 << 27, 1}, {100000, 5}}) {
        WordsOnGpu gpu(index, mostResults);
        for (const uint32_t most : {0u, 4u, 80u}) {
            SCOPED_TRACE(most);
            const WordRange expected =
                    rangeReference(one.words, texts, int32_t(most));
            DeviceResult result;
            gpu.rangeOnDevice(letters, most, {}, result);
            expectSame(expected, result.download());
            if (most == 4) {
                EXPECT_GE(result.parts.size(), parts);
            }
            // Found on the host, in the same object.
            gpu.copyOf(expected, result);
            expectSame(expected, result.download());
            EXPECT_EQ(result.parts.size(), 1u);
        }
        // Nothing is found, and nothing is asked.
        DeviceResult none;
        const std::vector<Text> far{Text(30, U'z')};
        const PackedWords farQueries(far, "queries");
        gpu.rangeOnDevice(
                index.dictionary().encode(farQueries.view()), 2, {}, none);
        EXPECT_EQ(none.lims, (std::vector<idx_t>{0, 0}));
        EXPECT_TRUE(none.parts.empty());
        const PackedWords noQueries({}, "queries");
        gpu.rangeOnDevice(
                index.dictionary().encode(noQueries.view()), 2, {}, none);
        EXPECT_EQ(none.lims, std::vector<idx_t>{0});
    }
}

/// An allocation that fails leaves the index as it was.
TEST_F(WordsOnGpuTest, AllocationsMayFail) {
    class NoMemory : public DeviceResult {
       public:
        Part allocate(idx_t) override {
            throw Error("no memory");
        }
    };
    const WordCase one = denseCase(300, kTwoLetters, 28);
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    const WordIndex index(list.view());
    WordsOnGpu gpu(index);
    const auto letters = index.dictionary().encode(queries.view());
    NoMemory none;
    EXPECT_THROW(gpu.rangeOnDevice(letters, 2, {}, none), Error);
    EXPECT_TRUE(none.lims.empty() && none.parts.empty());
    expectSame(
            rangeReference(one.words, one.queries, 2),
            gpu.range(letters, 2, {}));
}

TEST_F(WordsOnGpuTest, NearestByRanges) {
    const WordCase one = denseCase(2000, kManyLetters, 24);
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    const WordIndex index(list.view());
    WordsOnGpu gpu(index);
    int asked = 0;
    const words::RangeOf rangeOf = [&](const words::LetterWords& letters,
                                       uint32_t most) {
        ++asked;
        return gpu.range(letters, most, {});
    };
    for (const size_t k : {1, 10, 50}) {
        std::vector<int32_t> distances(one.queries.size() * k);
        std::vector<idx_t> ids(distances.size());
        index.knn(
                queries.view(),
                idx_t(k),
                distances.data(),
                ids.data(),
                {},
                rangeOf);
        for (size_t i = 0; i < one.queries.size(); ++i) {
            const auto expected = knnReference(one.words, one.queries[i], k);
            for (size_t j = 0; j < k; ++j) {
                ASSERT_EQ(expected[j].first, distances[i * k + j]);
                ASSERT_EQ(expected[j].second, ids[i * k + j]);
            }
        }
    }
    EXPECT_GT(asked, 3);
}

TEST_F(WordsOnGpuTest, ThreadsInterruptsAndRefusals) {
    const WordCase one = denseCase(500, kTwoLetters, 25);
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    const WordIndex index(list.view());
    WordsOnGpu gpu(index);
    const auto letters = index.dictionary().encode(queries.view());
    const WordRange expected = index.range(letters, 2, {});
    std::vector<WordRange> found(4);
    std::vector<std::thread> threads;
    for (WordRange& range : found) {
        threads.emplace_back([&] { range = gpu.range(letters, 2, {}); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const WordRange& range : found) {
        expectSame(expected, range);
    }

    WordOptions options;
    options.interrupt = [] { throw Error("stopped"); };
    EXPECT_THROW(gpu.range(letters, 2, options), Error);
    expectSame(expected, gpu.range(letters, 2, {}));

    EXPECT_TRUE(gpu.takes(letters, 2, {}, true));
    EXPECT_FALSE(gpu.takes(letters, 5, optionsOf(Method::Trie), false));
    EXPECT_THROW(gpu.takes(letters, 5, optionsOf(Method::Trie), true), Error);
    EXPECT_EQ(gpu.plan(index, 8, 2, {}, "cpu"), "trie, on the GPU");
    EXPECT_EQ(gpu.plan(index, 8, 5, {}, "cpu"), "brute_force, on the GPU");
    EXPECT_EQ(gpu.plan(index, 63, 4, {}, "cpu"), "trie, on the GPU");
    EXPECT_EQ(gpu.plan(index, 64, 4, {}, "cpu"), "brute_force, on the GPU");
    EXPECT_EQ(gpu.plan(index, 64, 4, optionsOf(Method::Trie), "cpu"), "cpu");
    EXPECT_EQ(gpu.plan(index, 4096, 5, {}, "cpu"), "cpu");
}

} // namespace
} // namespace faiss_bits::test
