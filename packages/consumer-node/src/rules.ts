/** The rules that every kit shares: what is a secret, and what differs between two errors of one cause. */
import { GIVEN } from "./given-rules.js";

/** One kind of secret: `pattern` has what stays as its first group, and the secret as its second. */
export interface SecretRule {
  pattern: RegExp;
  onlyIf?: RegExp;
  unless?: RegExp;
  /** For messages and literals; a line of code such as `token = read()` is no secret. */
  isProse: boolean;
}

interface GivenRule {
  pattern: string;
  ignore_case?: boolean;
  only_if?: string;
  unless?: string;
  is_prose?: boolean;
}

const secretRule = (given: GivenRule): SecretRule => ({
  pattern: new RegExp(given.pattern, given.ignore_case ? "gi" : "g"),
  onlyIf: given.only_if ? new RegExp(given.only_if) : undefined,
  unless: given.unless ? new RegExp(given.unless, "i") : undefined,
  isProse: given.is_prose ?? false,
});

export const SECRETS = GIVEN.secrets.map(secretRule);
export const CARD = new RegExp(GIVEN.card, "g");
export const CARD_ISSUER = new RegExp(GIVEN.card_issuer);
/** A text in a line of code. */
export const LITERAL = new RegExp(GIVEN.literal, "g");
/** A quoted part of a message, in one of three groups. */
export const QUOTED = new RegExp(GIVEN.quoted, "g");
/** A value of a body that has one of these says more than its words do. */
export const TELLING = new RegExp(GIVEN.telling);
/** What to put in the place of parts of a message that differ from letter to letter, in this order. */
export const VARIABLE = GIVEN.variable.map(
  ([pattern, other]) => [new RegExp(pattern!, "g"), other!.replaceAll(/\\(\d)/g, "$$$1")] as const,
);
/** Places of frames that are not the consumer's own code, by language. */
export const NOT_OWN = Object.fromEntries(
  Object.entries(GIVEN.not_own).map(([language, pattern]) => [language, new RegExp(pattern)]),
);
