#pragma once

#include "kernels/device/KeySource.h"
#include "kernels/survivors/ResultParams.h"

namespace faiss_bits {

/// The survivors of some rows, as kernels get them by value: entries
/// (kernels/device/Entry.cuh) that hold the result of their row, in any order.
struct ListParams {
    uint64_t* survivors = nullptr; // [rows, capacity]
    uint32_t* counts = nullptr;    // [rows], survivors found
    // [rows], an entry of each row that k survivors are not above; nullptr:
    // none is known.
    uint64_t* limits = nullptr;
    uint32_t capacity = 0; // entries that a row's survivors may have
    uint32_t staged = 0;   // of them fit the shared memory at the end
};

static_assert(!hasTailPadding<ListParams>());

/// What finishes rows of lists, whoever made them.
struct FinishParams : KeySource, ResultParams, ListParams {};

} // namespace faiss_bits
