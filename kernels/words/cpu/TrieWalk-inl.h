// The walk of a trie by queries in lanes. Included once per instruction set.

#if defined(FAISS_BITS_TRIE_WALK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_TRIE_WALK_INL
#undef FAISS_BITS_TRIE_WALK_INL
#else
#define FAISS_BITS_TRIE_WALK_INL
#endif

#include "kernels/words/cpu/WordKernels.h"

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::words::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// A column of the matrix of edit distances as bits: bit i of errors[e] says
/// that the first i letters of the query are at most e edits from the letters
/// of the trie so far (Wu and Manber 1992, for whole words). All zero: so is
/// every column below, and the subtree holds no result.
template <class T, int Errors>
struct ErrorColumn {
    using D = hn::ScalableTag<T>;
    using V = hn::Vec<D>;

    V errors[Errors + 1];

    /// Before the first letter: i letters are i edits away.
    static ErrorColumn first() {
        ErrorColumn column;
        for (int e = 0; e <= Errors; ++e) {
            column.errors[e] = hn::Set(D(), T((T(2) << e) - 1));
        }
        return column;
    }

    /// Steps over a letter, `same` being its row of the table.
    HWY_INLINE void step(V same) {
        V before = errors[0];
        errors[0] = hn::And(hn::ShiftLeft<1>(before), same);
        for (int e = 1; e <= Errors; ++e) {
            const V old = errors[e];
            // The same letter, or an insertion, or else a substitution of the
            // column before, or a deletion of this one.
            const V kept = hn::Or(hn::And(hn::ShiftLeft<1>(old), same), before);
            errors[e] = hn::Or(
                    kept, hn::ShiftLeft<1>(hn::Or(before, errors[e - 1])));
            before = old;
        }
    }

    void load(const T* HWY_RESTRICT from) {
        for (int e = 0; e <= Errors; ++e) {
            errors[e] = hn::Load(D(), from + e * hn::Lanes(D()));
        }
    }

    void store(T* HWY_RESTRICT to) const {
        for (int e = 0; e <= Errors; ++e) {
            hn::Store(errors[e], D(), to + e * hn::Lanes(D()));
        }
    }
};

/// Appends a hit for every lane whose bit of `last` is set.
template <class T, int Errors>
HWY_NOINLINE void appendHits(
        const ErrorColumn<T, Errors>& column,
        uint32_t node,
        TrieWalk<T>& walk) {
    using D = hn::ScalableTag<T>;
    const size_t lanes = hn::Lanes(D());
    HWY_ALIGN T values[(Errors + 1) * HWY_MAX_BYTES / sizeof(T)];
    column.store(values);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        for (uint32_t e = 0; e <= Errors; ++e) {
            if (values[e * lanes + lane] & walk.last[lane]) {
                walk.hits->push_back({lane, e, node});
                break;
            }
        }
    }
}

template <class T, int Errors>
void walkOfErrors(TrieWalk<T>& walk) {
    using D = hn::ScalableTag<T>;
    const D d;
    const size_t lanes = hn::Lanes(d);
    const size_t columnSize = (Errors + 1) * lanes;
    const auto last = hn::Load(d, walk.last);
    const auto rows = hn::Load(d, walk.rows);
    const auto hasHit = [&](const ErrorColumn<T, Errors>& column) {
        return !hn::AllTrue(
                d, hn::Eq(hn::And(column.errors[Errors], last), hn::Zero(d)));
    };

    auto column = ErrorColumn<T, Errors>::first();
    column.store(walk.columns);
    if ((walk.nodes[0].state & TrieNode::kEndsWord) && hasHit(column)) {
        appendHits<T, Errors>(column, 0, walk);
    }
    uint64_t visited = 0;
    for (uint32_t i = 1; i < walk.numNodes;) {
        const TrieNode node = walk.nodes[i];
        const size_t depth = node.depth();
        if (!(node.state & TrieNode::kFirstChild)) {
            column.load(walk.columns + (depth - 1) * columnSize);
        }
        column.step(hn::Load(d, walk.table + node.letter * lanes));
        ++visited;
        if (hn::AllTrue(
                    d,
                    hn::Eq(hn::And(column.errors[Errors], rows),
                           hn::Zero(d)))) {
            i = node.next;
            continue;
        }
        if ((node.state & TrieNode::kEndsWord) && hasHit(column)) {
            appendHits<T, Errors>(column, i, walk);
        }
        if (node.state & TrieNode::kBranches) {
            column.store(walk.columns + depth * columnSize);
        }
        ++i;
    }
    walk.visited += visited;
}

template <class T>
void walkTrie(TrieWalk<T>& walk) {
    static_assert(kMostErrors == 4, "a case for each");
    switch (walk.errors) {
        case 0:
            return walkOfErrors<T, 0>(walk);
        case 1:
            return walkOfErrors<T, 1>(walk);
        case 2:
            return walkOfErrors<T, 2>(walk);
        case 3:
            return walkOfErrors<T, 3>(walk);
        default:
            return walkOfErrors<T, 4>(walk);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::words::cpu
HWY_AFTER_NAMESPACE();

#endif
