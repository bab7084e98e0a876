// A strict CommonJS project: its Powertools has types of its own, so the kit needs such types, too.
import { processPartialResponse } from "@aws-lambda-powertools/batch";
import { ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { handlerOf, PERMANENT, PermanentError, Reporter } from "@smart-redriver/consumer";
import { reportingFifoProcessor, reportingProcessor } from "@smart-redriver/consumer/powertools";

const reporter = Reporter.fromEnv({ name: "billing", permanent: [...PERMANENT, "BadOrder"], client: new SQSClient() });
const processors = [reportingProcessor(reporter), reportingFifoProcessor(reporter)] as const;

export const plain = handlerOf(async (record) => {
  if (record.body === "") throw new PermanentError("an empty order");
}, reporter);

export const withPowertools = (event: Parameters<typeof plain>[0]) =>
  processors.map((one) => processPartialResponse(event, (record: { body: string }) => record.body, one));

export async function poll(url: string): Promise<void> {
  const { Messages } = await new SQSClient().send(new ReceiveMessageCommand({ QueueUrl: url }));
  for (const message of Messages ?? []) await reporter.message(message, url, () => message.Body);
}
