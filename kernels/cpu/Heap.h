#pragma once

#include <algorithm>

#include "kernels/cpu/OrderedEntry.h"

namespace faiss_bits::cpu {

/// Max-heaps of the k nearest candidates, farthest at the root (Yu et al. 2015,
/// sections 2.2 and 2.3): Arity 2 as in variant 1, 4 as in variants 5 and 6.

/// Elements in front of a heap with Arity 4, so that the four children of a
/// node share a line of the cache. Rows of heaps are that much longer.
constexpr idx_t kHeapPadding = 3;

inline idx_t heapStrideFor(idx_t k) {
    return (k + kHeapPadding + 7) / 8 * 8;
}

template <int Arity, class Entry>
void siftDown(Entry* heap, idx_t size, idx_t hole, Entry entry) {
    for (;;) {
        const idx_t first = hole * Arity + 1;
        if (first >= size) {
            break;
        }
        const idx_t last = std::min(first + Arity, size);
        idx_t largest = first;
        for (idx_t child = first + 1; child < last; ++child) {
            largest = heap[largest] < heap[child] ? child : largest;
        }
        if (!(entry < heap[largest])) {
            break;
        }
        heap[hole] = heap[largest];
        hole = largest;
    }
    heap[hole] = entry;
}

template <int Arity, class Entry>
void replaceRoot(Entry* heap, idx_t size, Entry entry) {
    siftDown<Arity>(heap, size, 0, entry);
}

template <int Arity, class Entry>
void pushHeap(Entry* heap, idx_t size, Entry entry) {
    idx_t hole = size;
    while (hole > 0) {
        const idx_t parent = (hole - 1) / Arity;
        if (!(heap[parent] < entry)) {
            break;
        }
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = entry;
}

/// Offers a candidate to a heap that holds at most k; true where it went in.
template <int Arity, class Entry>
bool offerToHeap(Entry* heap, idx_t& size, idx_t k, Entry entry) {
    if (size < k) {
        pushHeap<Arity>(heap, size, entry);
        ++size;
        return true;
    }
    if (entry < heap[0]) {
        replaceRoot<Arity>(heap, k, entry);
        return true;
    }
    return false;
}

} // namespace faiss_bits::cpu
