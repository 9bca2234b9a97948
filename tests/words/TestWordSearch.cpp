// Searches of words on the CPU: every method against the reference.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kernels/common/Error.h"
#include "kernels/words/cpu/RangeSearch.h"
#include "tests/words/WordReference.h"

namespace faiss_bits::test {
namespace {

using words::Method;
using words::WordIndex;
using words::WordOptions;
using words::WordRange;

constexpr Method kMethods[] = {
        Method::Auto,
        Method::BruteForce,
        Method::Trie,
        Method::ListOfClusters,
        Method::Sss};

WordOptions optionsOf(Method method, int threads = 0) {
    WordOptions options;
    options.method = method;
    options.threads = threads;
    return options;
}

void expectSame(const WordRange& expected, const WordRange& found) {
    EXPECT_EQ(expected.limits, found.limits);
    EXPECT_EQ(expected.ids, found.ids);
    EXPECT_EQ(expected.distances, found.distances);
}

TEST(WordReference, IsLevenshteins) {
    EXPECT_EQ(editDistance(U"", U""), 0);
    EXPECT_EQ(editDistance(U"", U"abc"), 3);
    EXPECT_EQ(editDistance(U"kitten", U"sitting"), 3);
    EXPECT_EQ(editDistance(U"ab", U"ba"), 2);
    EXPECT_EQ(editDistance(U"año", U"ano"), 1);
    EXPECT_EQ(editDistance(U"intention", U"execution"), 5);
}

TEST(WordSearch, EveryMethodFindsTheRange) {
    for (const WordCase& one : wordCases()) {
        const PackedWords list(one.words, "words");
        const PackedWords queries(one.queries, "queries");
        const WordIndex index(list.view());
        for (const int32_t most : {0, 1, 2, 3, 4, 5, 6, 9, 40, 300}) {
            const WordRange expected =
                    rangeReference(one.words, one.queries, most);
            for (const Method method : kMethods) {
                SCOPED_TRACE(
                        one.name + ", " + nameOf(method) +
                        ", r = " + std::to_string(most));
                expectSame(
                        expected,
                        index.range(queries.view(), most, optionsOf(method)));
            }
        }
    }
}

TEST(WordSearch, EveryMethodFindsTheNearest) {
    for (const WordCase& one : wordCases()) {
        const PackedWords list(one.words, "words");
        const PackedWords queries(one.queries, "queries");
        const WordIndex index(list.view());
        for (const size_t k : {1, 2, 7, 100, 4000}) {
            std::vector<std::vector<std::pair<int32_t, idx_t>>> expected;
            for (const Text& query : one.queries) {
                expected.push_back(knnReference(one.words, query, k));
            }
            for (const Method method : kMethods) {
                SCOPED_TRACE(
                        one.name + ", " + nameOf(method) +
                        ", k = " + std::to_string(k));
                std::vector<int32_t> distances(one.queries.size() * k, -7);
                std::vector<idx_t> ids(one.queries.size() * k, -7);
                index.knn(
                        queries.view(),
                        idx_t(k),
                        distances.data(),
                        ids.data(),
                        optionsOf(method));
                for (size_t i = 0; i < one.queries.size(); ++i) {
                    for (size_t j = 0; j < k; ++j) {
                        ASSERT_EQ(expected[i][j].first, distances[i * k + j])
                                << "query " << i << ", place " << j;
                        ASSERT_EQ(expected[i][j].second, ids[i * k + j])
                                << "query " << i << ", place " << j;
                    }
                }
            }
        }
    }
}

TEST(WordSearch, ThreadsChangeNothing) {
    const WordCase one = denseCase(3000, kManyLetters, 8);
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    const WordRange expected = rangeReference(one.words, one.queries, 2);
    for (const int threads : {1, 2, 3, 9}) {
        for (const Method method : kMethods) {
            // Anew, as the threads make what the method needs, too.
            const WordIndex index(list.view());
            SCOPED_TRACE(threads);
            expectSame(
                    expected,
                    index.range(queries.view(), 2, optionsOf(method, threads)));
        }
    }
}

TEST(WordSearch, SeveralThreadsMayCall) {
    const WordCase one = denseCase(3000, kManyLetters, 9);
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    const WordIndex index(list.view());
    const WordRange expected = rangeReference(one.words, one.queries, 2);
    std::vector<std::thread> threads;
    std::vector<WordRange> found(8);
    for (size_t i = 0; i < found.size(); ++i) {
        threads.emplace_back([&, i] {
            found[i] = index.range(
                    queries.view(), 2, optionsOf(kMethods[i % 5], 2));
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const WordRange& range : found) {
        expectSame(expected, range);
    }
}

TEST(WordSearch, IndexesLeaveWordsOut) {
    const WordCase one = denseCase(20000, kManyLetters, 10);
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    const WordIndex index(list.view());
    const auto share = [&](Method method) {
        words::WordStats stats;
        WordOptions options = optionsOf(method);
        index.range(queries.view(), 1, options); // makes what it needs
        options.stats = &stats;
        index.range(queries.view(), 1, options);
        const double all = double(one.words.size() * one.queries.size());
        return double(stats.distances) / all;
    };
    EXPECT_EQ(share(Method::BruteForce), 1);
    EXPECT_LT(share(Method::ListOfClusters), 0.9);
    EXPECT_LT(share(Method::Sss), 0.5);
    EXPECT_EQ(share(Method::Trie), 0);
}

TEST(WordSearch, Interrupts) {
    const WordCase one = denseCase(3000, kManyLetters, 11);
    const PackedWords list(one.words, "words");
    const PackedWords queries(one.queries, "queries");
    for (const Method method : kMethods) {
        const WordIndex index(list.view());
        WordOptions options = optionsOf(method);
        int calls = 0;
        options.interrupt = [&] {
            if (++calls == 2) {
                throw Error("stopped");
            }
        };
        EXPECT_THROW(index.range(queries.view(), 2, options), Error)
                << nameOf(method);
        EXPECT_EQ(calls, 2);
        // What was begun is made anew.
        options.interrupt = nullptr;
        expectSame(
                rangeReference(one.words, one.queries, 2),
                index.range(queries.view(), 2, options));
    }
}

template <class F>
std::string messageOf(const F& f) {
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(WordArguments, InvalidUtf8IsNamed) {
    const std::string good = "ab";
    for (const auto& [bytes, place] :
         std::vector<std::pair<std::string, const char*>>{
                 {"a\xFF", "byte 1 is 0xFF"},
                 {"\x80", "byte 0 is 0x80"},
                 {"\xC0\x80", "byte 0 is 0xC0"},         // overlong
                 {"\xE0\x80\x80", "byte 0 is 0xE0"},     // overlong
                 {"\xED\xA0\x80", "byte 0 is 0xED"},     // a surrogate
                 {"\xF4\x90\x80\x80", "byte 0 is 0xF4"}, // above U+10FFFF
                 {"\xF5\x80\x80\x80", "byte 0 is 0xF5"},
                 {"x\xC3", "byte 1 is 0xC3"}, // cut off
                 {"x\xE3\x81", "byte 1 is 0xE3"},
                 {"\xC3(", "byte 0 is 0xC3"}}) {
        const std::string all = good + bytes;
        const idx_t offsets[] = {0, 2, idx_t(all.size())};
        words::Utf8Words list;
        list.count = 2;
        list.bytes = all.data();
        list.offsets = offsets;
        const std::string expected =
                std::string("words[1] is not UTF-8: ") + place;
        EXPECT_EQ(messageOf([&] { WordIndex index(list); }), expected);
        list.name = "queries";
        const PackedWords one({U"a"}, "words");
        const WordIndex index(one.view());
        EXPECT_THAT(
                messageOf([&] { index.range(list, 1, {}); }),
                testing::StartsWith("queries[1] is not UTF-8"));
    }
}

TEST(WordArguments, BadOnesAreNamed) {
    const PackedWords list({U"a"}, "words");
    const WordIndex index(list.view());
    EXPECT_EQ(
            messageOf([&] { index.range(list.view(), -1, {}); }),
            "max_distance = -1 is negative");
    int32_t distance;
    idx_t id;
    EXPECT_EQ(
            messageOf([&] { index.knn(list.view(), 0, &distance, &id, {}); }),
            "k = 0 is below 1");
    EXPECT_EQ(
            messageOf([&] { index.knn(list.view(), 1, nullptr, &id, {}); }),
            "distances is a null pointer");
    words::Utf8Words bad = list.view();
    bad.count = -2;
    EXPECT_EQ(
            messageOf([&] { WordIndex other(bad); }),
            "words: their number -2 is negative");
    const idx_t down[] = {0, 1, 0};
    bad.count = 2;
    bad.offsets = down;
    EXPECT_EQ(
            messageOf([&] { WordIndex other(bad); }),
            "words: offsets[1] = 1 is above the next, 0");
    bad.offsets = nullptr;
    EXPECT_EQ(
            messageOf([&] { WordIndex other(bad); }),
            "words: offsets is a null pointer");
    EXPECT_THAT(
            messageOf([] { words::methodOf("fast"); }),
            testing::HasSubstr("'fast' is none of auto, brute_force, trie"));
}

TEST(WordPlan, SaysWhatRuns) {
    const PackedWords list({U"a"}, "words");
    const WordIndex index(list.view());
    const auto plan = [&](idx_t length, idx_t most, Method method) {
        return index.plan(1, length, most, optionsOf(method, 2));
    };
    using testing::HasSubstr;
    using testing::StartsWith;
    EXPECT_THAT(plan(8, 2, Method::Auto), StartsWith("trie by automata"));
    EXPECT_THAT(plan(63, 4, Method::Auto), StartsWith("trie by automata"));
    EXPECT_THAT(plan(64, 4, Method::Auto), StartsWith("brute force"));
    EXPECT_THAT(plan(8, 5, Method::Auto), StartsWith("brute force"));
    EXPECT_THAT(plan(65, 5, Method::Auto), StartsWith("trie by columns"));
    EXPECT_THAT(plan(8, 5, Method::Trie), StartsWith("trie by columns"));
    EXPECT_THAT(plan(8, 5, Method::Sss), StartsWith("sss"));
    EXPECT_THAT(plan(8, 5, Method::Auto), HasSubstr("2 threads"));
    for (const Method method : kMethods) {
        EXPECT_EQ(words::methodOf(nameOf(method)), method);
    }
}

} // namespace
} // namespace faiss_bits::test
