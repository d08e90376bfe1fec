/** One entry of an agent's pronunciation guide (web agent settings, §2.4). */
export interface PronunciationEntry {
  readonly word: string;
  readonly pronunciation: string;
  readonly case_sensitive: boolean;
  readonly spaced: boolean;
}
