// What stands between EditDistanceIndex and the GPU: results on the host, in
// parts, and the nearest words by ranges. Needs no FAISS.

#include <gmock/gmock.h>

#include <thread>

#include "faiss_bits/words/WordsOnGpu.h"
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
