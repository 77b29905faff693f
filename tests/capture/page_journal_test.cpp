// The journal under a capture: every commit happens or does not, wherever the process ends.
#include "capture/page_journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "core/mapped_file.hpp"
#include "core/random.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;
using testing::fresh_dir;
using ::testing::HasSubstr;

std::string contents(const fs::path& path) { return fs::file_size(path) == 0 ? "" : read_text_file(path); }

void hold(PageJournal& file, std::uint64_t at, const std::string& text) {
  ASSERT_TRUE(file.hold(at, text.size(), text.data()));
  file.set_end(std::max(file.end(), at + text.size()));
}

void raw(PageJournal& file, std::uint64_t at, const std::string& text) {
  ASSERT_TRUE(file.write_raw(at, text.size(), text.data()));
  file.set_end(std::max(file.end(), at + text.size()));
}

std::string read(PageJournal& file, std::uint64_t at, std::size_t count) {
  std::string text(count, '?');
  EXPECT_TRUE(file.read(at, count, text.data()));
  return text;
}

TEST(PageJournal, HeldBytesAreSeenAtOnceAndReachTheFileWithACommit) {
  const fs::path path = fresh_dir("journal") / "f";
  PageJournal file(path, true);
  hold(file, 0, "head");
  raw(file, 10'000, "values");
  EXPECT_EQ(read(file, 0, 4), "head");
  EXPECT_EQ(read(file, 10'000, 6), "values");
  EXPECT_EQ(read(file, 50'000, 3), std::string(3, '\0'));  // behind the end
  EXPECT_EQ(contents(path).substr(0, 4), std::string(4, '\0'));
  file.commit();
  EXPECT_EQ(contents(path).substr(0, 4), "head");
  EXPECT_EQ(contents(path).size(), 10'006U);
  EXPECT_FALSE(fs::exists(journal_path(path)));
}

// Raw data may share a page with metadata that is held; neither may take the other back.
TEST(PageJournal, RawBytesBesideHeldOnesSurviveTheCommit) {
  const fs::path path = fresh_dir("journal_beside") / "f";
  PageJournal file(path, true);
  hold(file, 100, "AAAA");
  raw(file, 104, "rrrr");
  hold(file, 108, "BBBB");
  raw(file, 4090, "across two pages");
  EXPECT_EQ(read(file, 100, 12), "AAAArrrrBBBB");
  file.commit();
  EXPECT_EQ(contents(path).substr(100, 12), "AAAArrrrBBBB");
  EXPECT_EQ(contents(path).substr(4090, 16), "across two pages");
}

TEST(PageJournal, WhatWasNotCommittedIsDropped) {
  const fs::path path = fresh_dir("journal_drop") / "f";
  {
    PageJournal file(path, true);
    hold(file, 0, "one");
  }
  EXPECT_FALSE(fs::exists(path));  // a new file without a commit leaves nothing
  {
    PageJournal file(path, true);
    hold(file, 0, "one");
    file.commit();
    hold(file, 0, "two");
    raw(file, 3, "tail");
  }
  EXPECT_EQ(contents(path), "one");
}

// A process that ends at any byte of the journal, or at any page of the file behind it.
TEST(PageJournal, ACommitCutOffAnywhereHappensOrDoesNot) {
  const fs::path dir = fresh_dir("journal_cut");
  const fs::path path = dir / "f", link = dir / "journal_of_the_second_commit";
  std::string before;
  {
    PageJournal file(path, true);
    for (std::uint64_t page = 0; page < 3; ++page) hold(file, page * 4096, "old");
    file.commit();
    before = contents(path);
    for (std::uint64_t page = 0; page < 3; ++page) hold(file, page * 4096, "new");
    // Another link to the journal outlives its removal.
    std::ofstream(journal_path(path)).flush();
    fs::create_hard_link(journal_path(path), link);
    file.commit();
  }
  const std::string journal = contents(link);
  ASSERT_GT(journal.size(), 3U * 4096);
  for (std::size_t cut = 0; cut <= journal.size(); cut += cut < 100 ? 1 : 997) {
    std::ofstream(path, std::ios::binary) << before;
    std::ofstream(journal_path(path), std::ios::binary) << journal.substr(0, cut);
    { const PageJournal file(path, false); }
    EXPECT_EQ(contents(path), before) << cut;
    EXPECT_FALSE(fs::exists(journal_path(path)));
  }
  // Whole: it is finished, also where some of its pages had reached the file.
  for (int pages = 0; pages <= 3; ++pages) {
    std::string partly = before;
    for (int page = 0; page < pages; ++page) partly.replace(static_cast<std::size_t>(page) * 4096, 3, "new");
    std::ofstream(path, std::ios::binary) << partly;
    std::ofstream(journal_path(path), std::ios::binary) << journal;
    { const PageJournal file(path, false); }
    for (std::size_t page = 0; page < 3; ++page) EXPECT_EQ(contents(path).substr(page * 4096, 3), "new");
    EXPECT_FALSE(fs::exists(journal_path(path)));
  }
}

TEST(PageJournal, AfterAWriteThatFailedNothingIsCommitted) {
  const fs::path path = fresh_dir("journal_failed") / "f";
  {
    PageJournal file(path, true);
    hold(file, 0, "one");
    file.commit();
    hold(file, 0, "two");
    EXPECT_FALSE(file.write_raw(std::uint64_t{1} << 63, 1, "x"));  // no file reaches there
    EXPECT_NE(file.error(), 0);
    EXPECT_TRUE(file.write_raw(10, 1, "x"));
    EXPECT_THROW(file.commit(), Error);
  }
  EXPECT_EQ(contents(path), "one");
}

TEST(PageJournal, ASecondWriterIsRefused) {
  const fs::path path = fresh_dir("journal_lock") / "f";
  PageJournal file(path, true);
  hold(file, 0, "one");
  file.commit();
  try {
    const PageJournal second(path, false);
    FAIL() << "opened twice";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("another process has it open"));
    EXPECT_EQ(error.kind(), ErrorKind::failed);
  }
}

}  // namespace
}  // namespace quantmap
