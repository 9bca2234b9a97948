#pragma once

#include "tests/select/SelectCase.h"

namespace faiss_bits::test {

/// Calls `expect` with a case in every layout of keys, ids and results: starts
/// and strides that are not aligned, ids given and shared, results unsorted,
/// and NaN dropped.
template <class Expect>
void forEachLayout(const SelectCase& plain, const Expect& expect) {
    SelectCase c = plain;
    c.padding = 3;
    c.shift = 1;
    c.outPadding = 5;
    c.idType = IdType::Int32;
    expect(c);
    c.givenIds = true;
    c.idPadding = 2;
    expect(c);
    c.sharedIds = true;
    c.idPadding = 0;
    expect(c);
    c = plain;
    c.sorted = false;
    c.idOffset = 77;
    expect(c);
    c.dropNan = true;
    c.values = Values::SomeNan;
    expect(c);
}

} // namespace faiss_bits::test
