/** A handler for Lambda's events of SQS, without Powertools. */
import type { LambdaRecord } from "./delivery.js";
import { classOf, tracebackOf } from "./failure.js";
import { Reporter } from "./reporter.js";

/** A call is given up within a second; Lambda has to be answered after it. */
const LONGEST_CALL_MILLIS = 1_200;

export interface Context {
  awsRequestId?: string;
  getRemainingTimeInMillis?(): number;
}

/**
 * A Lambda handler that works on all records of an event side by side, and answers with those that failed
 * (`ReportBatchItemFailures`). Of a FIFO queue it works on one after another, and on none behind a failure of its group.
 */
export function handlerOf<Record extends LambdaRecord>(work: (record: Record) => unknown, reporter = Reporter.fromEnv()) {
  return async (event: { Records: Record[] }, context?: Context | null) => {
    const batch = reporter.batch(() => context!.getRemainingTimeInMillis!() >= LONGEST_CALL_MILLIS);
    const failed = new Set<Record>();
    const one = async (record: Record) => {
      try {
        await batch.message(record, record.eventSourceARN!, () => work(record));
      } catch (error) {
        reporter.log(`message.failed: ${record.messageId}: ${toldOf(error, record.body)}`);
        failed.add(record);
      }
    };
    if (event.Records.some((record) => record.eventSourceARN?.endsWith(".fifo"))) {
      for (const record of event.Records) {
        const group = record.attributes?.["MessageGroupId"];
        const isBehind = [...failed].some((other) => other.attributes?.["MessageGroupId"] === group);
        if (isBehind) failed.add(record);
        else await one(record);
      }
    } else await Promise.all(event.Records.map(one));
    await batch.send(context?.awsRequestId);
    return { batchItemFailures: [...failed].map((record) => ({ itemIdentifier: record.messageId })) };
  };
}

/** The error with its stack, as nobody else logs it. */
function toldOf(error: unknown, body: string): string {
  try {
    return tracebackOf(error, body) || classOf(error);
  } catch {
    return typeof error; // anybody's properties
  }
}
