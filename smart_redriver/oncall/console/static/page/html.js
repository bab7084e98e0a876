// JSX without a build step. Everything that is interpolated becomes text or an attribute, never markup: letters are
// written by strangers.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
