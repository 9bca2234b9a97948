// Searches of words on the GPU against the reference, and against the CPU's.

#include <gmock/gmock.h>

#include "kernels/words/gpu/GpuWords.h"
#include "tests/common/GpuTest.h"
#include "tests/words/WordReference.h"

namespace faiss_bits::test {
namespace {

using words::GpuWords;
using words::Method;
using words::WordIndex;
using words::WordRange;

constexpr idx_t kNoLimit = idx_t(1) << 40;
constexpr Method kMethods[] = {
        Method::Auto,
        Method::BruteForce,
        Method::Trie,
        Method::ListOfClusters,
        Method::Sss};

WordRange download(const words::DeviceRange& range, idx_t queries) {
    WordRange out;
    out.limits.resize(size_t(queries) + 1);
    out.distances.resize(size_t(range.total));
    out.ids.resize(size_t(range.total));
    const auto copy = [](auto& to, const void* from) {
        if (!to.empty()) {
            BITS_CUDA_CHECK(cudaMemcpy(
                    to.data(),
                    from,
                    to.size() * sizeof(to[0]),
                    cudaMemcpyDeviceToHost));
        }
    };
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    copy(out.limits, range.limits);
    copy(out.distances, range.distances);
    copy(out.ids, range.ids);
    return out;
}

/// Without the queries that the trie does not take.
std::vector<Text> shortOnes(const std::vector<Text>& queries) {
    std::vector<Text> out;
    for (const Text& query : queries) {
        if (query.size() <= GpuWords::kLongestOfTrie) {
            out.push_back(query);
        }
    }
    return out;
}

class GpuWordsTest : public GpuTest {
   protected:
    void check(const WordCase& one, const std::vector<int32_t>& distances) {
        const PackedWords list(one.words, "words");
        const WordIndex index(list.view());
        GpuWords gpu(index.dictionary());
        gpu.setClusters(index.clusters({}));
        gpu.setPivots(index.pivots({}));
        const std::vector<Text> shorts = shortOnes(one.queries);
        for (const int32_t most : distances) {
            const WordRange expected =
                    rangeReference(one.words, one.queries, most);
            const bool fitsTrie = uint32_t(most) <= GpuWords::kMostErrors;
            for (const Method method : kMethods) {
                SCOPED_TRACE(
                        one.name + ", " + nameOf(method) +
                        ", r = " + std::to_string(most));
                if (method != Method::Trie) {
                    expectRange(
                            expected, index, gpu, one.queries, most, method);
                } else if (fitsTrie) {
                    expectRange(
                            shorts.size() == one.queries.size()
                                    ? expected
                                    : rangeReference(one.words, shorts, most),
                            index,
                            gpu,
                            shorts,
                            most,
                            method);
                }
            }
        }
    }

    static void expectRange(
            const WordRange& expected,
            const WordIndex& index,
            GpuWords& gpu,
            const std::vector<Text>& texts,
            int32_t most,
            Method method) {
        const PackedWords queries(texts, "queries");
        const words::LetterWords letters =
                index.dictionary().encode(queries.view());
        const TestStream stream;
        const words::DeviceQueries uploaded =
                gpu.upload(letters, 0, letters.count(), stream);
        const WordRange found = download(
                gpu.range(uploaded, uint32_t(most), method, kNoLimit, stream),
                letters.count());
        EXPECT_EQ(expected.limits, found.limits);
        EXPECT_EQ(expected.ids, found.ids);
        EXPECT_EQ(expected.distances, found.distances);
    }

    void checkLongRows(int numWords) {
        WordCase one{"long rows", {}, {}};
        WordMaker make(13);
        for (int i = 0; i < numWords; ++i) {
            one.words.push_back(make.word(make.below(12), kTwoLetters));
        }
        for (int i = 0; i < 40; ++i) {
            one.queries.push_back(make.word(make.below(14), kTwoLetters));
        }
        const PackedWords list(one.words, "words");
        const PackedWords queries(one.queries, "queries");
        const WordIndex index(list.view());
        GpuWords gpu(index.dictionary());
        const words::LetterWords letters =
                index.dictionary().encode(queries.view());
        for (const int most : {0, 2, 20}) {
            const WordRange expected = index.range(queries.view(), most, {});
            const auto uploaded =
                    gpu.upload(letters, 0, letters.count(), nullptr);
            const WordRange found = download(
                    gpu.range(
                            uploaded,
                            uint32_t(most),
                            Method::Auto,
                            kNoLimit,
                            nullptr),
                    letters.count());
            EXPECT_TRUE(expected.limits == found.limits) << most;
            EXPECT_TRUE(expected.ids == found.ids) << most;
            EXPECT_TRUE(expected.distances == found.distances) << most;
        }
    }
};

TEST_F(GpuWordsTest, EveryMethodFindsTheRange) {
    for (const WordCase& one : wordCases()) {
        check(one, {0, 1, 2, 3, 4, 5, 9, 40, 300});
    }
}

TEST_F(GpuWordsTest, Small) {
    check(denseCase(300, kManyLetters, 4), {0, 1, 3, 4, 6});
    check(edgeCase(), {2});
}

/// Words and queries at both sides of every length at which kernels change
/// (63, 64; 2, 4 and 8 blocks of 64; a block more than a warp has lanes).
WordCase longCase(
        std::vector<size_t> lengths,
        const Text& alphabet,
        uint32_t seed,
        const std::vector<int>& edits = {0, 1, 3, 20}) {
    WordCase one{"long queries", {U"", U"a"}, {U"", U"b", U"ab"}};
    WordMaker make(seed);
    for (const size_t length : lengths) {
        const Text word = make.word(length, alphabet);
        for (const int count : edits) {
            one.words.push_back(make.edited(word, count, alphabet));
            one.queries.push_back(make.edited(word, count, alphabet));
            one.words.back().resize(std::min<size_t>(
                    one.words.back().size(), GpuWords::kLongestWord));
            one.queries.back().resize(std::min<size_t>(
                    one.queries.back().size(), GpuWords::kLongestQuery));
        }
        one.queries.push_back(word);
    }
    return one;
}

TEST_F(GpuWordsTest, LongQueries) {
    check(longCase(
                  {31,  32,  33,  62,  63,  64,  65,  127, 128, 129,
                   191, 192, 193, 255, 256, 257, 511, 512, 513, 600},
                  kTwoLetters,
                  31),
          {0, 1, 4, 5, 40, 300, 5000});
    check(longCase({64, 129, 400, 513}, kManyLetters, 32), {0, 2, 7, 64, 600});
}

TEST_F(GpuWordsTest, LongestQueries) {
    check(longCase({1984, 2048, 2049, 4095}, kManyLetters, 33, {2, 20}),
          {4, 25, 2100});
}

TEST_F(GpuWordsTest, SmallLongQueries) {
    check(longCase({63, 64, 65, 129, 300, 530}, kManyLetters, 34), {1, 30});
}

Text ideographs() {
    Text alphabet;
    for (char32_t c = 0x4E00; c < 0x4E00 + 3000; ++c) {
        alphabet += c;
    }
    return alphabet;
}

/// Tables of long queries that shared memory does not hold, in several parts.
TEST_F(GpuWordsTest, LongQueriesOfLargeAlphabets) {
    const Text alphabet = ideographs();
    check(longCase({60, 64, 65, 129, 300, 600}, alphabet, 35), {0, 3, 9, 300});
    WordCase one{"long ideographs", {}, {}};
    WordMaker make(36);
    one.words.push_back(alphabet);
    one.words.push_back(make.word(4000, alphabet));
    for (int i = 0; i < 20; ++i) {
        one.words.push_back(make.word(make.below(4), alphabet));
    }
    for (int i = 0; i < 190; ++i) { // of 1.5 MB
        Text query = make.word(3990 + make.below(100), alphabet);
        query.replace(7, 1, one.words[2 + size_t(i % 20)]);
        one.queries.push_back(i % 95 == 3 ? one.words[1] : query);
        one.queries.back().resize(std::min<size_t>(
                one.queries.back().size(), GpuWords::kLongestQuery));
    }
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    const WordIndex index(list.view());
    GpuWords gpu(index.dictionary());
    for (const int32_t most : {3, 4050}) {
        const WordRange expected = index.range(queries.view(), most, {});
        EXPECT_FALSE(expected.ids.empty());
        expectRange(
                expected, index, gpu, one.queries, most, Method::BruteForce);
    }
}

/// Too many letters for tables in shared memory.
TEST_F(GpuWordsTest, LargeAlphabets) {
    WordCase one{"ideographs", {}, {}};
    WordMaker make(12);
    const Text alphabet = ideographs();
    for (int i = 0; i < 3000; ++i) {
        one.words.push_back(make.word(1 + make.below(5), alphabet));
    }
    for (int i = 0; i < 200; ++i) {
        one.queries.push_back(
                make.edited(one.words[size_t(i)], i % 4, alphabet));
    }
    check(one, {1, 2, 4});
}

/// Rows that are longer than a block has threads, ids that are beyond a window
/// of bits, and more results than there is room for at first. Between the
/// numbers of words a block's bits, and what else it shares, pass 48 KiB.
TEST_F(GpuWordsTest, LongRows) {
    for (const int numWords : {334000, 335000, 349000, 350000, 600000}) {
        SCOPED_TRACE(numWords);
        checkLongRows(numWords);
    }
}

TEST_F(GpuWordsTest, SmallRefusals) {
    const WordCase one = denseCase(50, kTwoLetters, 14);
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    const WordIndex index(list.view());
    GpuWords gpu(index.dictionary());
    words::LetterWords letters = index.dictionary().encode(queries.view());
    auto uploaded = gpu.upload(letters, 0, letters.count(), nullptr);
    const auto messageOf = [&](uint32_t most, Method method, idx_t results) {
        try {
            gpu.range(uploaded, most, method, results, nullptr);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    using testing::HasSubstr;
    EXPECT_THAT(
            messageOf(5, Method::Trie, kNoLimit),
            HasSubstr("max_distance = 5: the method 'trie' takes up to 4"));
    EXPECT_THAT(
            messageOf(1, Method::Sss, kNoLimit),
            HasSubstr("'sss' is not on the device"));
    EXPECT_THAT(
            messageOf(4, Method::Trie, 3),
            HasSubstr("are more than max_results = 3"));
    EXPECT_EQ(messageOf(4, Method::Trie, kNoLimit), ""); // still usable
    uploaded.longest = 64;
    EXPECT_THAT(
            messageOf(1, Method::Trie, kNoLimit),
            HasSubstr("one has 64 letters, the method 'trie' takes 63"));
    uploaded.longest = 4096;
    EXPECT_THAT(
            messageOf(1, Method::Auto, kNoLimit),
            HasSubstr("one has 4096 letters, the GPU takes 4095"));
}

} // namespace
} // namespace faiss_bits::test
